"""Asks the judge about answers while the story runs, so that a recording can be judged again without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import Tree
from memstory.language.references import substitute
from memstory.language.story import Step
from memstory.models.judge import Judge

_CHECK: Final = "judged"


def is_judged(steps: Sequence[Step]) -> bool:
    """Return whether a judge is asked anywhere in `steps`."""
    return any(any(_wanted(step)) or is_judged(step.steps) for step in steps)


async def judgements(
    judge: Judge | None, step: Step, question: str, result: Tree, names: Mapping[str, Tree]
) -> Mapping[str, bool]:
    """Return for the facts of each `judged:` of a step whether its answer fits them.

    Raises:
        NotSupported: nobody chose a judge.
        SetupError: the judge gave no clear verdict.
    """
    verdicts: dict[str, bool] = {}
    for one in _wanted(step):
        if judge is None:
            raise NotSupported("judge", "an answer is to be judged, and nobody chose a judge: --judge MODEL")
        facts = str(substitute(one["facts"], names))
        fits = await judge.fits(question, facts, result["answer"], one["votes"])
        if fits is None:
            raise SetupError(f"the judge '{judge.name}' gave no clear verdict: no majority of {one['votes']} votes")
        verdicts[facts] = fits
    return verdicts


def _wanted(step: Step) -> Iterator[Mapping[str, Tree]]:
    for expected in step.expect:
        if expected.field == "answer":
            yield from (check.argument for check in expected.matchers if check.name == _CHECK)
