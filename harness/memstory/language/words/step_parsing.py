"""Trees of steps -> `Step`s, each with one operation, its args in one form, its expectations and saved names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.target import Tree
from memstory.language.matchers.check import lacks_a_key
from memstory.language.matchers.expectable import EXPECTABLE
from memstory.language.reading import COUNTER, Reading, TreePath
from memstory.language.registry import unknown_name_message
from memstory.language.story import Expectation, Step
from memstory.language.words.shapes import Schema
from memstory.language.words.times import read_duration
from memstory.language.words.word import WORDS, Args, Word

MODIFIERS: Final[Mapping[str, Schema]] = {
    "as": {
        "description": "The user who acts (default: the story's user); an empty text is a user without a name.",
        "type": "string",
    },
    "session": {"description": "The session in which it happens.", "type": "string", "minLength": 1},
    "save": {
        "description": "Names for parts of the result, {name: field}, such as {near: id}; later steps use ${near}.",
        "title": "saved name",
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"$ref": "#/$defs/name"},
        "additionalProperties": {
            "title": "field of a result",
            "type": "string",
            "pattern": r"^[^.\s]+(\.[^.\s]+)*$",
            "examples": ["id", "items.1.id", "hits.0.text"],
        },
    },
    "forbid": {
        "description": "Texts that must not appear anywhere after the step, in any spelling: in its result, in a "
        "search for each text alone, in the list, the context or the log, or in the files if the story requires "
        "`delete.erases`. Each `twin` must still be found.",
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"title": "forbidden text", "type": "string", "minLength": 2},
    },
    "expect": {"description": "What the result must be.", "$ref": "#/$defs/expect"},
}
"""The grammar of the keys beside a step word."""


def read_steps(reading: Reading, steps: Tree) -> tuple[Step, ...]:
    """Return the steps of a story; one that the grammar refused is left out, but the names that it saves are known."""
    return _read(reading, steps, ("steps",), ()) if isinstance(steps, list) else ()


def _read(reading: Reading, steps: Sequence[Tree], path: TreePath, around: tuple[Word, ...]) -> tuple[Step, ...]:
    found = (_read_one(reading, tree, (*path, index), around) for index, tree in enumerate(steps))
    return tuple(step for step in found if step is not None)


def _read_one(reading: Reading, tree: Tree, path: TreePath, around: tuple[Word, ...]) -> Step | None:
    if not isinstance(tree, dict):
        return None
    word = _word(reading, tree, path)
    if word is not None and reading.is_sound(path):
        return _step(reading, word, tree, path, around)
    reading.saved |= _names_within(tree)
    if word is not None:
        _read_sound_parts(reading, word, tree, path, around)
    return None


def _read_sound_parts(
    reading: Reading, word: Word, tree: Mapping[str, Tree], path: TreePath, around: tuple[Word, ...]
) -> None:
    """Read the sound parts of a broken step for further mistakes, so that all are reported at once."""
    value = tree[word.name]
    # Steps under a key that the word does not have were not looked at by the grammar.
    has_steps = "steps" in word.grammar.get("properties", {})
    if has_steps and isinstance(value, dict) and isinstance(value.get("steps"), list):
        _read(reading, value["steps"], (*path, word.name, "steps"), (*around, word))
    place = (*path, "expect")
    expect = reading.sound_parts(tree.get("expect"), place)
    for field, one in expect.items() if isinstance(expect, dict) else ():
        if field in word.expectable and field != "eventually" and not lacks_a_key(EXPECTABLE[field].grammar, one):
            EXPECTABLE[field].read(reading, one, (*place, field))


def _word(reading: Reading, tree: Mapping[str, Tree], path: TreePath) -> Word | None:
    names = [key for key in tree if key in WORDS]
    if len(names) == 1:
        return WORDS[names[0]]
    if len(names) > 1:
        listed = " and ".join(f"'{name}'" for name in names)
        reading.fault((*path, names[1]), f"two operations in one step: {listed}; give each its own step", at_key=True)
    elif reading.is_sound(path):
        reading.fault(path, f"this step does nothing; it needs one of {', '.join(sorted(WORDS))}")
    return None


def _names_within(tree: Tree) -> set[str]:
    """Return the names that a broken step would save, so that its mistake is not reported at each of their uses."""
    if isinstance(tree, list):
        return set().union(*map(_names_within, tree))
    if not isinstance(tree, dict):
        return set()
    save = tree.get("save")
    own = set(save) if isinstance(save, dict) else {save} if isinstance(save, str) else set()
    return own.union(*map(_names_within, tree.values()))


def _step(reading: Reading, word: Word, tree: Mapping[str, Tree], path: TreePath, around: tuple[Word, ...]) -> Step:
    value, place = tree[word.name], (*path, word.name)
    for block in {block.name for block in around}.intersection(word.not_inside):
        message = f"'{word.name}' cannot be inside '{block}'; put it before or after"
        reading.fault(place, message, at_key=True)
    inner = word.inner_steps(value)
    counting = any(block.is_loop for block in around)
    outside = {key: one for key, one in tree.items() if key != "expect" and not (inner and key == word.name)}
    reading.require_names(outside, path, counting=counting)
    args = word.read(reading, value, place)
    if "forbid" in tree and not reading.has_twin:
        message = "a memory that stores nothing would pass this 'forbid': mark an item of an earlier 'add' as 'twin'"
        reading.fault((*path, "forbid"), message, at_key=True)
    steps = _read_inner(reading, inner, place, (*around, word))
    save = _read_saved_names(reading, word, tree, path)
    reading.saved |= save.keys()
    # A step's expectations may speak of what the step itself has saved.
    reading.require_names(tree.get("expect"), (*path, "expect"), counting=counting)
    expect = tuple(_expectations(reading, word, args, tree.get("expect", {}), (*path, "expect")))
    return Step(op=word.name, args=args, mark=reading.mark(place), user=tree.get("as"), session=tree.get("session"),
                save=save, expect=expect, forbid=tuple(tree.get("forbid", ())), steps=steps)  # fmt: skip


def _read_inner(
    reading: Reading, inner: tuple[str, Tree] | None, path: TreePath, around: tuple[Word, ...]
) -> tuple[Step, ...]:
    if inner is None:
        return ()
    key, steps = inner
    if isinstance(steps, list):
        return _read(reading, steps, (*path, key), around)
    step = _read_one(reading, steps, (*path, key), around)
    return (step,) if step else ()


def _read_saved_names(reading: Reading, word: Word, tree: Mapping[str, Tree], path: TreePath) -> dict[str, str]:
    """Return the paths in the recorded result by name, of `save:` beside the word and within its argument."""
    found = {name: word.saved_path(field) for name, field in tree.get("save", {}).items()}
    for name, field in found.items():
        if unknown := word.unknown_field(field):
            reading.fault((*path, "save", name), unknown_name_message(unknown, "field of a memory", word.memory_fields))
    found |= word.saved_names(tree[word.name])
    if found and not word.fields:
        reading.fault((*path, "save"), f"'{word.name}' has no result to save from", at_key=True)
    for name in found.keys() & reading.origins.keys():
        message = f"'{name}' is under `{reading.origins[name]}` already; choose another name"
        reading.fault((*path, "save", name), message, at_key=True)
    if COUNTER in found:
        reading.fault((*path, "save"), f"'{COUNTER}' counts the passes of `repeat` and `parallel`; choose another name",
                      at_key=True)  # fmt: skip
    return found


def _expectations(
    reading: Reading, word: Word, args: Args, expect: Mapping[str, Tree], path: TreePath
) -> Iterator[Expectation]:
    wait = expect.get("eventually")
    seconds = None if wait is None else read_duration(reading, wait, (*path, "eventually")) / 1e6
    if expect.keys() == {"eventually"}:
        reading.fault((*path, "eventually"), "'eventually' says how long, but not what to wait for", at_key=True)
    if {"error", "refusal"} <= expect.keys():
        reading.fault(
            (*path, "refusal"), "'error' wants a refusal and 'refusal' allows one; keep one of them", at_key=True
        )
    for field, value in expect.items():
        place = (*path, field)
        if field not in word.expectable:
            known = ", ".join(word.expectable)
            reading.fault(place, f"'{word.name}' has no '{field}'; its result has: {known}", at_key=True)
        elif field != "eventually":
            matchers = EXPECTABLE[field].read(reading, value, place)
            found = Expectation(field=field, matchers=matchers, mark=reading.mark(place), eventually_seconds=seconds)
            word.check_expectation(reading, args, found, place)
            yield found
