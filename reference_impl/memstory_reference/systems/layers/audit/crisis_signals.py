"""The local classifier: what in a message must be logged, whatever a model says or whether there is one.

English, and three German ways to say it; by form, so that what is only hinted at passes. Its test has the list of
sentences on which precision and recall are measured, with those that it misses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.systems.layers.audit.crisis_log import CrisisLevel
from memstory_reference.text.folding import fold, letters_for_digits

_MEANS_TO = r"(?:going to|gonna|want to|wanna|plan(?:ning)? to|will|'ll|about to|ready to|thinking (?:of|about))"
_NOT_MEANT = r"(?<!not )(?<!n't )(?<!never )"
_ANOTHER = (
    r"(?:him|her|them|somebody|someone|my (?:wife|husband|partner|mother|father|sister|brother|child|kids?|boss))"
)
_KIN = (
    r"(?:he|she|they|my (?:\w+ )?(?:husband|wife|partner|boyfriend|girlfriend|father|mother|dad|mom|son|brother|boss))"
)

_ACUTE: Mapping[str, str] = {
    "suicide": r"\b(?:kill|end|hang|shoot) (?:myself|my (?:own )?life|it all)\b|\bsuicid(?!\w* squad)"
    r"|\b(?:take|taking|ending) my (?:own )?life\b|\bending it all\b|\bjump off (?:a|the) (?:bridge|roof|building)\b"
    r"|\b(?:want|going|ready|rather|wish i could|wish i were|wish i was) (?:to )?(?:die|be dead|dead)\b|\bwanna die\b"
    r"|\bbetter off (?:dead|without me)\b|\bno reason to live\b|\bnothing (?:left )?to live for\b|\bkms\b"
    r"|\b(?:no|not any|isn't any) (?:point|use|sense) (?:in|to) (?:living|live|being alive)(?=[^\w]*$|[.!,;]|\s+any)"
    r"|\b(?:not|don't|dont) (?:want|wish) to (?:be alive|exist|wake up (?:tomorrow|again|any ?more))\b"
    r"|\b(?:not|don't|dont) (?:want|wish) to live(?: any ?more| any longer)?(?=[^\w]*$|[.!,;])"
    r"|\bwish i (?:had never been|was never|were never) born\b"
    r"|\bmich umbringen\b|\b(?:selbstmord|suizid)|\bnicht mehr leben\b",
    "self_harm": r"\b(?:hurt|harm|cut|cutting|burn|burned|injure) (?:myself|my (?:arms?|wrists?|legs?))\b"
    r"|\bself[\s-]?harm|\b(?:been|started|am|i'm) cutting again\b",
    "violence": rf"{_NOT_MEANT}\b{_MEANS_TO} (?:kill|hurt|stab|shoot|poison)(?:ing)? {_ANOTHER}\b(?! (?:an?|some) )",
    "overdose": r"\boverdos\w*\b(?! (?:on|of) (?:sugar|chocolate|coffee|caffeine|cake))"
    r"|\b(?:took|swallowed|take) (?:all|too many|a lot) (?:of )?(?:(?:my|the) )?(?:pills|tablets|meds)\b(?! out)",
}
_CONCERN: Mapping[str, str] = {
    "hopeless": r"\b(?:hopeless|can't go on|cannot go on|give up on life)\b"
    r"|\b(?:feel|am|i'm) (?:so |completely |totally )?worthless\b(?! (?:at|in|with))",
    "abuse": rf"\b{_KIN} (?:"
    r"(?:hits?|beats?) me\b(?! (?:up (?:for|when|with|if)|at|to|by|in\b))"
    r"|(?:abuse[sd]?|threaten(?:s|ed)?|slap(?:s|ped)|punche[sd]|chokes?|choked|raped) me\b)",
}
_COMPILED = tuple(
    (level, name, re.compile(pattern, re.IGNORECASE))
    for level, patterns in ((CrisisLevel.ACUTE, _ACUTE), (CrisisLevel.CONCERN, _CONCERN))
    for name, pattern in patterns.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisNotice:
    """What a message holds."""

    level: CrisisLevel
    signals: Sequence[str]


def crisis_notice(text: str) -> CrisisNotice | None:
    """Return what must be logged of a message, None for nothing.

    >>> crisis_notice("I want to die."), crisis_notice("My phone died.")
    (CrisisNotice(level=<CrisisLevel.ACUTE: 'acute'>, signals=('suicide',)), None)
    """
    plain = " ".join(fold(text.replace("’", "'")).split())
    readings = {plain, letters_for_digits(plain)}
    found = [(level, name) for level, name, pattern in _COMPILED if any(map(pattern.search, readings))]
    if not found:
        return None
    # The graver ones stand first.
    return CrisisNotice(level=found[0][0], signals=tuple(name for _, name in found))
