"""The local classifier: what in a message must be logged, whatever a model says or whether there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.systems.layers.audit.crisis_log import CrisisLevel

_ACUTE: Mapping[str, str] = {
    "suicide": r"\b(?:kill|end|hang|shoot) (?:myself|my life|it all)\b|\bsuicid|\btake my (?:own )?life\b"
    r"|\b(?:want|going|ready|rather|wish i could|wish i were|wish i was) (?:to )?(?:die|be dead|dead)\b"
    r"|\bbetter off dead\b|\bno reason to live\b",
    "self_harm": r"\b(?:hurt|harm|cut|cutting|burn|injure) (?:myself|my (?:arms?|wrists?|legs?))\b|\bself[\s-]?harm",
    "violence": r"\b(?:kill|hurt|stab|shoot) (?:him|her|them|my (?:wife|husband|partner|mother|father|child|kids?))\b",
    "overdose": r"\boverdos|\b(?:took|swallowed|take) (?:all|too many|a lot) (?:of )?(?:my|the) "
    r"(?:pills|tablets|meds)\b",
}
_CONCERN: Mapping[str, str] = {
    "hopeless": r"\b(?:hopeless|can't go on|cannot go on|can't take it any ?more|give up on life|worthless)\b",
    "abuse": r"\b(?:he|she|they|my \w+) (?:hits|beats|abuses|threatens) me\b",
}
_COMPILED = tuple(
    (level, name, re.compile(pattern, re.IGNORECASE))
    for level, patterns in ((CrisisLevel.ACUTE, _ACUTE), (CrisisLevel.CONCERN, _CONCERN))
    for name, pattern in patterns.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """What a message holds."""

    level: CrisisLevel
    signals: Sequence[str]


def notice(text: str) -> Noticed | None:
    """Return what must be logged of a message, None for nothing.

    >>> notice("I want to die."), notice("My phone died.")
    (Noticed(level=<CrisisLevel.ACUTE: 'acute'>, signals=('suicide',)), None)
    """
    plain = " ".join(text.replace("’", "'").split())
    found = [(level, name) for level, name, pattern in _COMPILED if pattern.search(plain)]
    if not found:
        return None
    # The graver ones stand first.
    return Noticed(level=found[0][0], signals=tuple(name for _, name in found))
