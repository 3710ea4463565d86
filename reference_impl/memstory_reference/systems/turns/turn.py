"""One turn or note, and what is accepted as one: checked before anything is embedded, read or written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    DEFAULT_LIMITS,
    Limits,
    checked_mapping,
    checked_memory,
    checked_owner,
    checked_text,
    checked_texts,
    is_finite,
    is_storable,
)
from memstory_reference.text.words import stems

TURN, NOTE = KINDS = ("turn", "note")
"""A turn was said by somebody; a note has no speaker, and no turn before or after it."""

MAX_METADATA_CHARACTERS = 10_000
READ_CHARACTERS = 10_000
"""A longer text is found by its beginning: MiniLM reads 256 tokens, and `STEMS` words stand in far fewer."""

STEMS = 120
"""So many words of a text are looked for: a long answer has some of any question's."""

FIELDS = ("speaker", "session", "said_at")
"""Fields of a turn that metadata may bring."""

USER, ASSISTANT = "user", "assistant"
FOREIGN = (ASSISTANT, "tool", "system", "web")
ROLES = (USER, *FOREIGN)
"""Who talks in a chat with an agent, by the metadata field `role` or `source`, or by the speaker's name."""

VERIFIED = "verified"
"""A metadata field that only the user's own turns keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is remembered. `said_at` is as it was given, ISO 8601; `noted_at` is when the memory was told."""

    id: str
    text: str
    noted_at: datetime
    kind: str = NOTE
    key: str | None = None
    speaker: str | None = None
    session: str | None = None
    said_at: str | None = None
    metadata: Mapping[str, Tree] = field(default_factory=dict)

    @property
    def moment(self) -> datetime:
        """When it was said, or noted where nobody knows; aware."""
        return self.noted_at if self.said_at is None else moment_of(self.said_at)

    @property
    def is_foreign(self) -> bool:
        """Whether it comes from a page, a tool, a system or an assistant, and not from a person."""
        return self.role in FOREIGN

    @property
    def role(self) -> str | None:
        """Which of `ROLES` said it, None if nothing says so."""
        return _first_role(self.metadata.get("role"), self.speaker, self.metadata.get("source"))

    @property
    def embedded(self) -> str:
        """What of it goes into its vector: who said it, and the beginning of the text."""
        return (f"{self.speaker}: {self.text}" if self.speaker else self.text)[:READ_CHARACTERS]

    @property
    def stems(self) -> list[str]:
        """The words that it is found by, cut to their stems, in their order: those of its beginning."""
        return stems(self.text[:READ_CHARACTERS])[:STEMS]

    @property
    def fields(self) -> dict[str, Tree]:
        """All that is known of it beside the text, as `where` finds it."""
        known = {"speaker": self.speaker, "session": self.session, "said_at": self.said_at}
        return {**self.metadata, **{name: value for name, value in known.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """What a caller asks to remember; `metadata` may bring speaker, session, said_at, and one of `ROLES` as `role`."""

    text: str
    kind: str | None = None
    key: str | None = None
    speaker: str | None = None
    session: str | None = None
    said_at: str | None = None
    metadata: Mapping[str, Tree] = field(default_factory=dict)


def checked_turn(new: NewTurn, identifier: str, noted_at: datetime, limits: Limits = DEFAULT_LIMITS) -> Turn:
    """Return the turn that `new` asks for; InputError says what of it cannot be taken."""
    rest = dict(checked_mapping(new.metadata, "metadata"))
    brought = {name: rest.pop(name, None) for name in FIELDS}
    brought["speaker"] = new.speaker if brought["speaker"] is None else brought["speaker"]
    told_by = _first_role(rest.get("role")) if brought["speaker"] is None else brought["speaker"]
    speaker = _name("speaker", told_by)
    session = _name("session", brought["session"] if brought["session"] is not None else new.session)
    said_at = brought["said_at"] if brought["said_at"] is not None else new.said_at
    if _first_role(rest.get("role"), speaker, rest.get("source")) in FOREIGN:
        rest.pop(VERIFIED, None)
    kind = new.kind or (TURN if speaker is not None else NOTE)
    if kind not in KINDS:
        raise InputError(f"kind {kind!r:.80} is unknown; allowed: {', '.join(KINDS)}")
    return Turn(
        id=identifier,
        text=checked_memory(new.text, limits, "text"),
        noted_at=noted_at.astimezone(UTC),
        kind=kind,
        key=_name("key", new.key),
        speaker=speaker,
        session=session,
        said_at=None if said_at is None else _checked_moment(said_at),
        metadata=_checked_metadata(rest),
    )


def checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds that are meant, each once."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InputError(f"kind {unknown[0]!r:.80} is unknown; allowed: {', '.join(KINDS)}")
    return tuple(dict.fromkeys(kinds))


def moment_of(text: str) -> datetime:
    """Return an ISO 8601 moment, aware: one without an offset is taken for UTC.

    >>> moment_of("2024-01-07").isoformat()
    '2024-01-07T00:00:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{text!r:.80} is not a moment; allowed: ISO 8601, as 2024-05-08 or 2024-05-08T17:30"
        ) from error


def _checked_moment(said_at: object) -> str:
    if not isinstance(said_at, str):
        raise InputError(f"said_at must be text, not {type(said_at).__name__}")
    moment_of(said_at)
    return said_at


def _first_role(*named: object) -> str | None:
    return next((one.lower() for one in named if isinstance(one, str) and one.lower() in ROLES), None)


def _name(what: str, value: object) -> str | None:
    return None if value is None else checked_owner(value, what)


def _checked_metadata(metadata: Mapping[str, Tree]) -> dict[str, Tree]:
    try:
        written = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata must be JSON of finite numbers: {error}") from error
    read: dict[str, Tree] = json.loads(checked_text(written, "metadata", MAX_METADATA_CHARACTERS))
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What must hold, all together: `since` and `until` bound the moment, both included.

    `where` names exact values of speaker, session, said_at or metadata; True is not 1.
    """

    kinds: Sequence[str] = ()
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    where: Mapping[str, Tree] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether every turn meets them."""
        return self == Conditions()

    def admits(self, turn: Turn) -> bool:
        """Say whether a turn has what `where` names; all else is known without its text."""
        fields = turn.fields
        return all(name in fields and _is_same(fields[name], value) for name, value in self.where.items())


def checked_conditions(conditions: Conditions) -> Conditions:
    """Return the conditions if they can be met; InputError says which is wrong."""
    checked_kinds(checked_texts(conditions.kinds, "kinds", most=100, longest=100))
    if conditions.session is not None:
        checked_owner(conditions.session, "session")
    if not isinstance(conditions.where, Mapping):
        raise InputError(f"where must be an object, not {type(conditions.where).__name__}")
    for name, value in conditions.where.items():
        is_text = isinstance(value, str) and is_storable(value)
        if not (is_text or isinstance(value, bool) or is_finite(value)):
            raise InputError(f"where[{name!r:.40}] is {value!r:.80}; allowed: a text, a number, true or false")
    if conditions.since and conditions.until and conditions.since > conditions.until:
        raise InputError(f"since {conditions.since.isoformat()} lies after until {conditions.until.isoformat()}")
    return conditions


def _is_same(found: Tree, wanted: Tree) -> bool:
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
