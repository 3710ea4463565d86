"""What can go wrong in a memory system besides what the contract names, by who must act.

MemstoryError
├── InputError           the caller gave what cannot be taken: refused, nothing was changed
│   ├── NotFoundError        something was named that is not there
│   └── UnknownTextError     a fixed embedder has no vector for a text
└── StoreConflictError   the store belongs to another model, dimension, space or process: its operator acts
    ├── OtherModelError      its vectors are of another model
"""

from __future__ import annotations

from memstory.contract.errors import MemstoryError

UNSTORED = "this is not stored: "
"""How it begins what a caller hears of a text that must not be kept."""


class InputError(MemstoryError, ValueError):
    """Input that is refused before anything is read or written; a ValueError too, for callers that know no more."""


class NotFoundError(InputError):
    """Something was named that is not there."""


class UnknownTextError(InputError):
    """A text that a fixed embedder has no vector for."""


class StoreConflictError(MemstoryError):
    """A store that this configuration may not open."""


class OtherModelError(StoreConflictError):
    """A store whose vectors are of another model, `model`."""

    def __init__(self, message: str, model: str) -> None:
        super().__init__(message)
        self.model = model
