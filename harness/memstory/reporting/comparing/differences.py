"""What is not the same in two runs of one target, in words: each case, part by part, times left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memstory.language.matchers.finding import difference
from memstory.reporting.comparing.columns import Column
from memstory.reporting.views import step_number
from memstory.results.document import evidence, natural
from memstory.target import Json
from memstory.tasks.perturbation import level_name

_TIMES = frozenset({"seconds", "embedding_seconds"})


def differences_in_words(before: Column, after: Column) -> list[str]:
    """Return a line for each part of a case that differs, and one for each story that only one of both has."""
    stories = sorted({*before.cases, *after.cases}, key=natural)
    return [line for story in stories for line in _of_story(story, before, after)]


def _of_story(story: str, before: Column, after: Column) -> Iterator[str]:
    if story not in before.cases or story not in after.cases:
        yield f"{story}: only in {before.title if story in before.cases else after.title}"
        return
    old, new = _parts(before.cases[story]), _parts(after.cases[story])
    if not (_has_steps(old) and _has_steps(new)):
        # A baseline keeps no steps: that is no difference of what happened.
        old, new = _without_steps(old), _without_steps(new)
    for part in [*old, *(part for part in new if part not in old)]:
        if part not in old or part not in new:
            yield f"{story}, {part}: only in {before.title if part in old else after.title}"
        elif old[part] != new[part]:
            yield f"{story}, {part}:\n{_in_words(old[part], new[part])}"


def _parts(case: Json) -> Mapping[str, Json]:
    """Return the parts of a case by a name for people."""
    parts: dict[str, Json] = {"outcome": {name: case[name] for name in ("outcome", "reason", "metrics", "warnings")}}
    for trial in case["trials"]:
        shown = evidence(case, trial)
        where = f"trial {trial['trial'] + 1}, " if len(case["trials"]) > 1 else ""
        for step in shown["steps"]:
            parts[f"{where}step {step_number(step['path'])} ({step['op']})"] = {
                name: value for name, value in step.items() if name not in _TIMES
            }
        for record in shown["retrieval"]:
            at = f" at {level_name(record['level'])}" if record["level"] else ""
            for number, asked in enumerate(record["questions"], 1):
                name = f"{where}question {number}, {asked['id']}{at}"
                parts[name] = {"retrieved": asked["retrieved"], "scores": asked["scores"]}
    return parts


def _has_steps(parts: Mapping[str, Json]) -> bool:
    return len(_without_steps(parts)) < len(parts)


def _without_steps(parts: Mapping[str, Json]) -> Mapping[str, Json]:
    return {name: part for name, part in parts.items() if "op" not in part}


def _in_words(old: Json, new: Json) -> str:
    text = difference(old, new) or "too large to show; 'memstory show' has both"
    return "\n".join(f"  {line}" for line in text.splitlines())
