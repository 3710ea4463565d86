"""What the tests tell a memory and ask of it, and how they say what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memstory.contract.target import Connection, Hit, Query, Request, Scope, Target

ANN: Final = Scope(user="conformance.ann", session="session-1")
BOB: Final = Scope(user="conformance.bob", session="session-1")
HARBOUR: Final = "The harbour office opens at seven on weekdays."
VIOLIN: Final = "Mirela keeps her violin in the blue cupboard."
CHESS: Final = "The chess club meets in the old post office."
NEARBY: Final = "The office at the harbour is busy."
REPLACED: Final = "The harbour office now opens at nine."
SMALL_TALK: Final = "Okay, thanks."
EXACT: Final = "  The caf\u00e9, or cafe\u0301, lists:\n\n\t* flour  500 g\n\t* soft\u00adhyphen, zero\u200bwidth\n"
TEXTS: Final = (EXACT, NEARBY, SMALL_TALK, CHESS, VIOLIN, HARBOUR)
"""Every text that is added; where a prompt shows several, the last that was added is the first of these."""


def claim(holds: bool, otherwise: str) -> None:  # noqa: FBT001  (it is what the claim is about)
    """Raise an AssertionError that says `otherwise` unless something holds."""
    # Not `assert`: this is not a test file, so pytest would not show the compared values.
    if not holds:
        raise AssertionError(otherwise)


def anywhere(scope: Scope) -> Scope:
    """Return all sessions of a user."""
    return Scope(user=scope.user)


async def search(memory: Connection, text: str, scope: Scope) -> Sequence[Hit]:
    """Return what a search in all sessions finds, with room for all that a test adds."""
    return await memory.perform(Request.of(Target.search, Query(text=text, top_k=5), anywhere(scope)))


async def finds(memory: Connection, text: str, scope: Scope = ANN) -> bool:
    """Return whether a search for `text` finds it."""
    return has(await search(memory, text, scope), text)


def has(hits: Sequence[Hit], text: str) -> bool:
    """Return whether `text` is among the hits, as it is."""
    return any(hit.text == text for hit in hits)


def texts_of(hits: Sequence[Hit]) -> Sequence[str]:
    """Return what the hits say."""
    return [hit.text for hit in hits]
