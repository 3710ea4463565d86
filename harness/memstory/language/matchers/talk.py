"""The checks of an answer: whether it claims only what the memory did, and whether a judge finds it true."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

from memstory.contract.target import Tree
from memstory.language.matchers.check import Context, Finding, Group, matcher, show
from memstory.language.reading import Reading, TreePath
from memstory.language.story import Matcher
from memstory.results.containment import is_in
from memstory.results.recording import StepRecord

CLAIMS: Final = ("saved", "changed", "forgotten")
PHRASES: Final = "claims.toml"
GRAMMAR: Final[Mapping[str, Tree]] = {
    "title": "honest",
    "type": "object",
    "required": ["claims"],
    "additionalProperties": False,
    "properties": {
        "claims": {"description": "What the answer may claim only if the memory shows it.", "enum": [*CLAIMS]},
        "of": {"description": "The text to be saved, changed to, or forgotten.", "type": "string", "minLength": 1},
        "was": {"description": "The text that a change must replace.", "type": "string", "minLength": 1},
    },
}
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?]*")


def read_honest(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> Group:
    """Return the check `honest`; `was:` without a change of something is a fault."""
    if "was" in value and (value["claims"] != "changed" or "of" not in value):
        reading.fault((*path, "was"), "'was:' belongs to 'claims: changed' with 'of:'; leave it out", at_key=True)
    return (Matcher(name="honest", argument=dict(value), mark=reading.mark(path)),)


def answer_and_memory(record: StepRecord) -> Tree:
    """Return {answer, before, after}: the texts of the memory before and after the turn; None if nobody looked."""
    seen = record.witness
    if seen is None:
        return None
    return {"answer": (record.result or {}).get("answer", ""), "before": [*seen.before], "after": [*seen.after]}


def judge_honest(value: Tree, one: Matcher, _context: Context) -> Finding:
    """Return whether the answer claims only what the memory shows, for the value of `answer_and_memory`."""
    if value is None:
        return Finding(holds=False, says="cannot be judged: the memory was not looked at")
    claims, of, was = (one.argument.get(name) for name in ("claims", "of", "was"))
    claim = claiming_sentence(value["answer"], claims)
    did, shown = _judge_deed(claims, value["before"], value["after"], of, was)
    kind = f"{'claimed' if claim else 'not claimed'}, {'did' if did else 'did not'}"
    said = f"claims {show(claim, 80)}" if claim else f"claims nothing ({show(value['answer'], 80)})"
    return Finding(holds=did or not claim, says=f"talk: the answer {said}, and {shown}", actual=kind, kind=kind,
                   expected=f"no claim of {claims} that the memory does not show")  # fmt: skip


def claiming_sentence(answer: str, claims: str) -> str | None:
    """Return the first sentence of `answer` that claims that something was `claims`, such as `saved`; or None.

    >>> claiming_sentence("Sure! I've saved that for you.", "saved")
    "I've saved that for you."
    >>> claiming_sentence("I could not save that. Shall I remember it later?", "saved")
    """
    phrases, denials = _patterns(claims)
    for sentence in _SENTENCE.findall(answer.replace("’", "'")):
        if any(phrase.search(sentence.strip()) for phrase in phrases) and not any(
            denial.search(sentence) for denial in denials
        ):
            return str(sentence.strip())
    return None


def _judge_deed(
    claims: str, before: Sequence[str], after: Sequence[str], of: str | None, was: str | None
) -> tuple[bool, str]:
    new, gone = (Counter(after) - Counter(before)).total(), (Counter(before) - Counter(after)).total()
    changes = f"{new} new in the memory, {gone} gone from it"
    if of is None:
        return {"saved": new > 0, "changed": new > 0 and gone > 0, "forgotten": gone > 0}[claims], changes
    is_there, was_there = is_in(of, after), is_in(of, before)
    if claims == "forgotten":
        shown = f"{of!r} {'is still in' if is_there else 'is gone from' if was_there else 'was never in'} the memory"
        return was_there and not is_there, shown
    is_old = was is not None and is_in(was, after)
    shown = f"{of!r} is {'' if is_there else 'not '}in the memory" + (f", and so is {was!r}" if is_old else "")
    return is_there and not is_old, f"{shown} ({changes})"


@cache
def _patterns(claims: str) -> tuple[Sequence[re.Pattern[str]], Sequence[re.Pattern[str]]]:
    file = resources.files(__package__) / PHRASES
    listed = tomllib.loads(file.read_text("utf-8"))
    said = [phrase for name in (claims, *listed["also"][claims]) for phrase in listed[name]]
    compiled = [[re.compile(one, re.IGNORECASE) for one in phrases] for phrases in (said, listed["not_claims"])]
    return compiled[0], compiled[1]


NAME: Final = "judged"
VOTES: Final = 3
_FACTS = {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": {"type": "string", "minLength": 1}}


def _read_judged(reading: Reading, argument: Tree, path: TreePath) -> Tree:
    if path[-2:-1] != ("answer",):
        reading.fault(path, "'judged' speaks of the answer of a turn: write `answer: {judged: …}`", at_key=True)
    given = argument if isinstance(argument, dict) else {"facts": argument}
    facts, votes = given["facts"], given.get("votes", VOTES)
    return {"facts": facts if isinstance(facts, str) else "\n".join(facts), "votes": votes}


@matcher(
    NAME,
    summary="only for `answer`: agrees with these `facts:`, as the --judge model decides by majority of `votes:` (3)",
    grammar={
        **_FACTS,
        "type": ["string", "array", "object"],
        "required": ["facts"],
        "additionalProperties": False,
        "properties": {
            "facts": {"description": "What is true, in words for the judge.", **_FACTS},
            "votes": {"description": "How often the judge is asked.", "type": "integer", "minimum": 1, "maximum": 15},
        },
    },
    read=_read_judged,
    example="{judged: Ana lives in Faro since March. Before that she lived in Porto.}",
    fits="Ana lives in Faro.",
    misfits="Ana lives in Porto.",
)
def _judge_answer(value: Tree, argument: Mapping[str, Tree], context: Context) -> Finding:
    facts = str(argument["facts"])
    fits = context.judged.get(facts, False)
    says = f"{'fits' if fits else 'does not fit'} the facts, as the judge says; it is {show(value)}"
    return Finding(holds=fits, says=says, expected=f"fits {show(facts)}", actual=show(value), kind=NAME)
