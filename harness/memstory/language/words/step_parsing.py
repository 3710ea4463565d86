"""Step trees -> Step: one operation each, its arguments in their one form, its expectations, its saved names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from memstory.language.matchers.groups import call_checks, group, hit_checks
from memstory.language.reading import COUNTER, Reading
from memstory.language.story import Expectation, Matcher, Step
from memstory.language.text import TreePath
from memstory.language.vocabulary import ANY_STEP_FIELDS, STEPS
from memstory.language.words.arguments import Args, microseconds, normalised
from memstory.target import Json

_NOT_IN_PARALLEL = ("parallel", "crash", "restart", "at", "advance", "fault")
_BLOCKS = ("parallel", "repeat", "crash")
_ONLY_WITH = {"context_tokens": ("say", "context")}
_LIST_RESULTS = ("search", "list", "tools")
_RECEIPTS = ("add", "update")


def read_steps(reading: Reading, steps: Json) -> tuple[Step, ...]:
    """Return the steps; a step that the grammar refused is left out, but its saved names count as saved."""
    return _read(reading, steps, ("steps",), ()) if isinstance(steps, list) else ()


def _read(reading: Reading, steps: Sequence[Json], path: TreePath, around: tuple[str, ...]) -> tuple[Step, ...]:
    found = []
    for index, tree in enumerate(steps):
        place = (*path, index)
        if not isinstance(tree, dict):
            continue
        op = _operation(reading, tree, place)
        if op is not None and reading.sound(place):
            found.append(_step(reading, op, tree, place, around))
        else:
            reading.saved |= _saved_within(tree)
    return tuple(found)


def _operation(reading: Reading, tree: Mapping[str, Json], path: TreePath) -> str | None:
    ops = [key for key in tree if key in STEPS]
    if len(ops) == 1:
        return ops[0]
    if len(ops) > 1:
        listed = " and ".join(f"'{op}'" for op in ops)
        reading.fault(
            (*path, ops[1]), f"two operations in one step: {listed}; give each a step of its own", at_key=True
        )
    elif reading.sound(path):
        reading.fault(path, f"this step does nothing; it needs one of {', '.join(sorted(STEPS))}")
    return None


def _saved_within(tree: Json) -> set[str]:
    """Names that a broken step would have saved, so that one mistake is not reported at every later use."""
    if isinstance(tree, list):
        return set().union(*map(_saved_within, tree))
    if not isinstance(tree, dict):
        return set()
    save = tree.get("save")
    own = set(save) if isinstance(save, dict) else {save} if isinstance(save, str) else set()
    return own.union(*map(_saved_within, tree.values()))


def _step(reading: Reading, op: str, tree: Mapping[str, Json], path: TreePath, around: tuple[str, ...]) -> Step:
    value = tree[op]
    if "parallel" in around and op in _NOT_IN_PARALLEL:
        reading.fault((*path, op), f"'{op}' cannot stand inside 'parallel'; put it before or after", at_key=True)
    if "crash" in around and op in _BLOCKS:
        reading.fault((*path, op), f"'{op}' cannot stand inside 'crash: {{during: …}}'", at_key=True)
    counting = bool({"parallel", "repeat"} & set(around))
    outside = {key: inner for key, inner in tree.items() if key not in ("expect", *_BLOCKS)}
    reading.known_references(outside, path, counting=counting)
    args = normalised(reading, op, value, (*path, op))
    inner = _inner(reading, op, value, (*path, op), around)
    save = _saves(reading, op, tree, path)
    reading.saved |= save.keys()
    # A step's expectations may speak of what the step itself has saved.
    reading.known_references(tree.get("expect"), (*path, "expect"), counting=counting)
    expect = tuple(_expectations(reading, op, args, tree.get("expect", {}), (*path, "expect")))
    return Step(op=op, args=args, mark=reading.mark((*path, op)), user=tree.get("as"), session=tree.get("session"),
                save=save, expect=expect, steps=inner)  # fmt: skip


def _inner(reading: Reading, op: str, value: Json, path: TreePath, around: tuple[str, ...]) -> tuple[Step, ...]:
    if op in ("parallel", "repeat"):
        return _read(reading, value["steps"], (*path, "steps"), (*around, op))
    if op == "crash" and isinstance(value, dict) and "during" in value:
        during = value["during"]
        if isinstance(during, list):
            return _read(reading, during, (*path, "during"), (*around, op))
        return tuple(
            _step(reading, inner, during, (*path, "during"), (*around, op))
            for inner in [_operation(reading, during, (*path, "during"))] if inner
        )  # fmt: skip
    return ()


def _saves(reading: Reading, op: str, tree: Mapping[str, Json], path: TreePath) -> dict[str, str]:
    """Map names to paths in the recorded result, from `save:` of the step and of the items of `add`."""
    found = {name: _recorded(op, field) for name, field in tree.get("save", {}).items()}
    if op == "add":
        items = tree["add"] if isinstance(tree["add"], list) else [tree["add"]]
        found |= {item["save"]: f"items.{index}.id"
                  for index, item in enumerate(items) if isinstance(item, dict) and "save" in item}  # fmt: skip
    if found and not STEPS[op].fields:
        reading.fault((*path, "save"), f"'{op}' has no result to save from", at_key=True)
    if COUNTER in found:
        reading.fault((*path, "save"), f"'{COUNTER}' counts the passes of `repeat` and `parallel`; choose another name",
                      at_key=True)  # fmt: skip
    return found


def _recorded(op: str, field: str) -> str:
    """Where a field is in `StepRecord.result`, whose outermost layer a story does not see.

    >>> _recorded("add", "id"), _recorded("search", "hits.1.id"), _recorded("context", "text")
    ('items.0.id', '1.id', '')
    """
    head, _, rest = field.partition(".")
    if op not in ("say", "tool") and head in STEPS[op].fields:
        field, head = rest, rest.partition(".")[0]
    if op in _RECEIPTS and field and head != "items":
        return f"items.{field}" if head.isdigit() else f"items.0.{field}"
    if op in _LIST_RESULTS and field and not head.isdigit():
        return f"0.{field}"
    return re.sub(r"^0(\.|$)", "", field) if op == "get" else field


def _expectations(
    reading: Reading, op: str, args: Args, expect: Mapping[str, Json], path: TreePath
) -> Iterator[Expectation]:
    patience = microseconds(expect["eventually"]) / 1e6 if "eventually" in expect else None
    if expect.keys() == {"eventually"}:
        reading.fault((*path, "eventually"), "'eventually' says how long, but not what to wait for", at_key=True)
    if {"error", "refusal"} <= expect.keys():
        reading.fault(
            (*path, "refusal"), "'error' wants a refusal and 'refusal' allows one; keep one of them", at_key=True
        )
    for field, value in expect.items():
        place = (*path, field)
        if field == "eventually" or not _fits(reading, op, field, place):
            continue
        matchers = _matchers(reading, field, value, place)
        if field == "data":
            _look_for_texts(reading, op, args, matchers, place)
        yield Expectation(field=field, matchers=matchers, mark=reading.mark(place), eventually_seconds=patience)


def _fits(reading: Reading, op: str, field: str, path: TreePath) -> bool:
    allowed = _ONLY_WITH.get(field, STEPS if field in ANY_STEP_FIELDS else ())
    if field in STEPS[op].fields or op in allowed:
        return True
    known = [*STEPS[op].fields, *(name for name in ANY_STEP_FIELDS if op in _ONLY_WITH.get(name, STEPS))]
    reading.fault(path, f"'{op}' has no '{field}'; its result has: {', '.join(known)}", at_key=True)
    return False


def _matchers(reading: Reading, field: str, value: Json, path: TreePath) -> tuple[Matcher, ...]:
    if field == "hits":
        return hit_checks(reading, value, path)
    if field == "tool_calls":
        return call_checks(reading, value, path)
    if field == "refusal":
        return ()
    if field == "error" and isinstance(value, bool):
        if not value:
            reading.fault(
                path, "'error: false' says nothing: a refusal that is not expected fails anyway; leave it out"
            )
        return ()
    if field == "tools" and isinstance(value, list):
        return (Matcher(name="names", argument=tuple(value), mark=reading.mark(path)),)
    return group(reading, value, path)


def _look_for_texts(reading: Reading, op: str, args: Args, matchers: Sequence[Matcher], path: TreePath) -> None:
    """Tell the runner which texts `none_contain` is about: the contents of files are not recorded."""
    texts = [text for matcher in matchers if matcher.name == "none_contain" for text in matcher.argument]
    if texts and (op != "inspect" or args["what"] != "files"):
        reading.fault(
            (*path, "none_contain"), "'none_contain' speaks of files; it goes with {inspect: files}", at_key=True
        )
    elif texts:
        args["search_for"] = texts
