"""A tree that passed the grammar -> Story, with the checks that a grammar cannot express."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memstory.contract.errors import StoryError
from memstory.contract.target import Tree
from memstory.language.capabilities import FEATURES, is_known, operations
from memstory.language.grammar import grammar
from memstory.language.matchers.groups import fields, group
from memstory.language.needs import reasons
from memstory.language.reading import Document, Reading, TreePath
from memstory.language.registry import unknown
from memstory.language.rows import Row
from memstory.language.story import Expectation, Retrieval, Step, Story, Trials
from memstory.language.violations import violations
from memstory.language.words.step_parsing import read_steps
from memstory.language.words.times import LONGEST_WAIT, span_of

_BELONGS = {"path": "dataset", "split": "dataset", "unit": "dataset", "where": "corpus", "distractors": "corpus"}
"""Keys of a retrieval that need another one."""

_OUTCOMES = {"pass": "passed", "fail": "failed"}


def story_of(
    document: Document, row: Row, controls: Collection[str] | None = None
) -> tuple[Story | None, Sequence[StoryError]]:
    """Return the story of one row, or None with everything that is wrong with it.

    `controls` are the names that `control:` may have; where nobody says, any.
    """
    errors: list[StoryError] = []
    if not isinstance(row.tree, dict):
        return None, (StoryError("a story is a mapping: it starts with 'story: ID' and 'title: …'", document.mark),)
    found = list(violations(row.tree, document))
    reading = Reading(document=document, errors=errors, broken=[path for path, _ in found], given=row.given)
    _read_vectors(reading, row.tree)
    steps = read_steps(reading, row.tree.get("steps"))
    parts = _parts(reading, row.tree)
    _known_controls(reading, row.tree, controls)
    _waits_briefly(reading, steps)
    # An `expect` at the top of steps is a mistake as a whole: what is in it is meant for a step.
    told = [error for path, error in found if path[:1] != ("expect",) or "retrieval" in row.tree]
    every = told + errors
    if every:
        return None, tuple(every)
    story = _story(reading, row, steps, parts)
    return replace(story, needs=frozenset(reasons(story))), ()


def _story(reading: Reading, row: Row, steps: Sequence[Step], parts: Mapping[str, Any]) -> Story:
    tree, document = row.tree, reading.document
    text = document.text.strip() + (f"\n# row {row.name}" if row.name else "")
    return Story(
        id=tree["story"],
        title=tree["title"],
        mark=document.mark,
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
        tags=tuple(tree.get("tags", ())),
        covers=tuple(tree.get("covers", ())),
        targets=tuple(tree.get("targets", ())),
        needs=frozenset(tree.get("requires", ())),
        options=tree.get("options", {}),
        vectors=reading.vectors,
        model=tuple(tree.get("model", ())),
        steps=steps,
        perturb=tree.get("perturb", {}),
        measure=tree.get("measure", False),
        control={name: _OUTCOMES[word] for name, word in tree.get("control", {}).items() if name != "because"},
        control_because=tree.get("control", {}).get("because"),
        settles=tree.get("settle", "auto") == "auto",
        redact=tree.get("redact", "none"),
        harm=tree.get("harm"),
        slug=tree.get("slug"),
        row=row.name,
        notes=tree.get("notes"),
        **parts,
    )


def _read_vectors(reading: Reading, tree: Mapping[str, Tree]) -> None:
    if reading.sound(("vectors",)):
        for text, vector in tree.get("vectors", {}).items():
            reading.vector(text, vector, ("vectors", text))


def _parts(reading: Reading, tree: Mapping[str, Tree]) -> Mapping[str, Any]:
    """Return what is parsed beside the steps; a part that the grammar refused is left out."""
    retrieval = _retrieval(reading, tree)
    _one_purpose(reading, tree)
    if reading.sound(("requires",)):
        for index, capability in enumerate(tree.get("requires", ())):
            if not is_known(capability):
                reading.fault(("requires", index), unknown(capability, "capability", [*operations(), *FEATURES]))
    return {
        "retrieval": retrieval,
        "trials": _trials(reading, tree),
        "expect": _story_expectations(reading, tree, retrieval),
    }


def _waits_briefly(reading: Reading, steps: Sequence[Step]) -> None:
    waited = sum(_waited(step) for step in steps)
    if waited > LONGEST_WAIT:
        message = f"the steps 'wait' of a story last {LONGEST_WAIT / 1e6:g} s at most, here {waited / 1e6:g} s"
        reading.fault(("steps",), f"{message}; 'advance' moves the clock of a target that has one", at_key=True)


def _waited(step: Step) -> int:
    own: int = step.args.get("microseconds", 0) if step.op == "wait" else 0
    times: int = step.args["times"] if step.op == "repeat" else 1
    return own + times * sum(_waited(inner) for inner in step.steps)


def _known_controls(reading: Reading, tree: Mapping[str, Tree], controls: Collection[str] | None) -> None:
    if controls is None or not reading.sound(("control",)):
        return
    usual = [name for name in grammar()["properties"]["control"]["properties"] if name != "because"]
    for name in tree.get("control", {}):
        if name not in (*controls, "because"):
            reading.fault(("control", name), unknown(name, "control", usual, controls), at_key=True)


def _one_purpose(reading: Reading, tree: Mapping[str, Tree]) -> None:
    if ("steps" in tree) == ("retrieval" in tree):
        found = "has both" if "steps" in tree else "has neither"
        reading.fault((), f"a story has either 'steps' or a 'retrieval'; this one {found}")
    if "measure" in tree and "expect" in tree:
        reading.fault(("measure",), "'measure' replaces 'expect': this story has both", at_key=True)
    if "retrieval" not in tree:
        where = "beside the step that it speaks of" if "expect" in tree else "in a story with a 'retrieval'"
        for key in ("expect", "perturb"):
            if key in tree:
                reading.fault((key,), f"'{key}' at the top belongs to a retrieval story; write it {where}", at_key=True)


def _retrieval(reading: Reading, tree: Mapping[str, Tree]) -> Retrieval | None:
    path: TreePath = ("retrieval",)
    task = tree.get("retrieval")
    if not isinstance(task, dict) or not reading.sound(path):
        return None
    given = {name for name in ("corpus", "queries", "dataset") if name in task}
    if given not in ({"corpus", "queries"}, {"dataset"}):
        reading.fault(path, "a retrieval names 'corpus' and 'queries', or a 'dataset'; "
                      f"found: {', '.join(sorted(given)) or 'none of them'}", at_key=True)  # fmt: skip
    for key, owner in _BELONGS.items():
        if key in task and owner not in task:
            reading.fault(
                (*path, key), f"'{key}' belongs to a '{owner}', which this retrieval does not have", at_key=True
            )
    within = span_of(reading, task["within"], (*path, "within")) / 1e6 if "within" in task else None
    return Retrieval(mark=reading.mark(path), **{**task, "k": int(task.get("k", 10)), "within": within})


def _trials(reading: Reading, tree: Mapping[str, Tree]) -> Trials:
    if not (reading.sound(("trials",)) and reading.sound(("pass",))):
        return Trials()
    count = int(tree.get("trials", 1))
    at_least = int(tree.get("pass", {}).get("at_least", count))
    if at_least > count:
        reading.fault(("pass", "at_least"), f"{at_least} trials must pass, but there {_are(count)}; raise 'trials' or "
                      "lower 'at_least'")  # fmt: skip
    return Trials(count=count, at_least=at_least)


def _are(count: int) -> str:
    return "is only 1" if count == 1 else f"are only {count}"


def _story_expectations(
    reading: Reading, tree: Mapping[str, Tree], retrieval: Retrieval | None
) -> Sequence[Expectation]:
    if not isinstance(tree.get("expect"), dict) or not reading.sound(("expect",)):
        return ()
    return tuple(_expectations(reading, tree["expect"], retrieval))


def _expectations(reading: Reading, expect: Mapping[str, Tree], retrieval: Retrieval | None) -> Iterator[Expectation]:
    for name, value in expect.items():
        path: TreePath = ("expect", name)
        for metric in value if name == "metrics" and retrieval else ():
            cut = int(metric.partition("@")[2] or 0)
            if retrieval and cut > retrieval.k:
                reading.fault((*path, metric), f"'{metric}' looks at {cut} results, but 'k' is {retrieval.k}; "
                              f"write {{retrieval: {{k: {cut}}}}} or more", at_key=True)  # fmt: skip
        matchers = (fields(reading, value, path),) if name == "metrics" else group(reading, value, path)
        yield Expectation(field=name, matchers=matchers, mark=reading.mark(path))
