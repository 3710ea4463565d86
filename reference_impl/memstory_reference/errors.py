"""What can go wrong in a memory system, by who must act.

MemorySystemError
├── InputError           the caller gave what cannot be taken: refused, nothing was changed
│   ├── NotFoundError        something was named that is not there
│   └── UnknownTextError     a fixed embedder has no vector for a text
├── StoreConflictError   the store belongs to another model, dimension, space or process: its operator acts
├── SetupProblem         the machine lacks something: the message says what to type
└── UnavailableError     something outside does not answer now; `ports` names the embedder's and the chat model's own
"""

from __future__ import annotations


class MemorySystemError(Exception):
    """The root of every error that the reference implementation raises on purpose."""


class InputError(MemorySystemError, ValueError):
    """Input that is refused before anything is read or written; a ValueError too, for callers that know no more."""


class NotFoundError(InputError):
    """Something was named that is not there."""


class UnknownTextError(InputError):
    """A text that a fixed embedder has no vector for."""


class StoreConflictError(MemorySystemError):
    """A store that this configuration may not open."""


class SetupProblem(MemorySystemError):  # noqa: N818  (the machine lacks something; the program is right)
    """A machine on which the system cannot start; the message says what to type."""


class UnavailableError(MemorySystemError):
    """A service outside that does not answer now."""
