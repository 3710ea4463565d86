"""`judged`: whether an answer fits the gold facts, as a language model says that has passed its exam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.contract.target import Tree
from memstory.language.matchers.check import matcher
from memstory.language.matchers.finding import Context, Finding, show
from memstory.language.reading import Reading, TreePath

NAME: Final = "judged"
VOTES: Final = 3
_FACTS = {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": {"type": "string", "minLength": 1}}


def _read(reading: Reading, argument: Tree, path: TreePath) -> Tree:
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
    read=_read,
    example="{judged: Ana lives in Faro since March. Before that she lived in Porto.}",
    fits="Ana lives in Faro.",
    misfits="Ana lives in Porto.",
)
def _judged(value: Tree, argument: Mapping[str, Tree], context: Context) -> Finding:
    facts = str(argument["facts"])
    fits = context.judged.get(facts, False)
    says = f"{'fits' if fits else 'does not fit'} the facts, as the judge says; it is {show(value)}"
    return Finding(holds=fits, says=says, expected=f"fits {show(facts)}", actual=show(value), kind=NAME)
