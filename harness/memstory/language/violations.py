"""Violations of the grammar by the tree of a story, in messages for its author."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import jsonschema_rs

from memstory.contract.errors import StoryError
from memstory.contract.target import Tree
from memstory.language.grammar import grammar, grammar_version
from memstory.language.json_schemas import schema_faults
from memstory.language.matchers import MATCHERS
from memstory.language.matchers.means import is_metric
from memstory.language.reading import StoryDocument, TreePath
from memstory.language.references import REFERENCE
from memstory.language.registry import intended_name, shorten, suggestion, unknown_name_message
from memstory.language.words.step_parsing import MODIFIERS

if TYPE_CHECKING:
    from jsonschema import ValidationError

_TYPE_WORDS: Mapping[str, str] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


@lru_cache(maxsize=1)
def _validator(_changes: tuple[int, ...]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(dict(grammar()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Violation:
    """A keyword of the schema that a value of the tree violates, or a key (`of_name`)."""

    keyword: str
    wanted: Tree
    found: Tree
    schema: Mapping[str, Tree]
    path: TreePath
    of_name: bool
    message: str


def violations(tree: Tree, document: StoryDocument) -> Iterator[tuple[TreePath, StoryError]]:
    """Yield (path, error with its place) for each violation of the grammar by `tree`.

    Below a misspelt key, the tree is checked as if the key had the nearest name: nobody has to correct it twice.
    """
    written: Mapping[TreePath, str] = {}
    corrected: Mapping[TreePath, str] | None = None
    # Nearly every tree fits, and to find that out is all that this costs then.
    while not _validator(grammar_version()).is_valid(tree):
        typos: dict[TreePath, str] = {}
        for error in _schema_violations(tree):
            typos |= _typos(error, tree)
            for path, is_key, message in _messages(error):
                if corrected is None or any(path[:end] in corrected for end in range(len(path))):
                    place = _rename(path, written)
                    yield place, StoryError(message, document.at_key(place) if is_key else document.at(place))
        if not typos:
            return
        corrected = {_rename(path, typos): str(path[-1]) for path in typos}
        written = {_rename(path, typos): name for path, name in written.items()} | corrected
        tree = _correct(tree, typos)


def _schema_violations(tree: Tree) -> Iterator[_Violation]:
    for fault in schema_faults(tree, grammar()):
        if not _is_saved_value(fault):
            yield _Violation(
                keyword=str(fault.validator),
                wanted=fault.validator_value,
                found=fault.instance,
                schema=cast("Mapping[str, Tree]", fault.schema),
                path=tuple(fault.absolute_path),
                of_name="propertyNames" in fault.absolute_schema_path,
                message=fault.message,
            )


def _typos(error: _Violation, tree: Tree) -> dict[TreePath, str]:
    """Return {path: nearest name} for the unknown keys of a mapping whose nearest name it does not have already."""
    if error.keyword == "additionalProperties":
        known, found = [*error.schema.get("properties", {})], [key for key in error.found if isinstance(key, str)]
    elif error.of_name and error.keyword == "enum":
        known, found = list(error.wanted), [error.found]
    else:
        return {}
    around = tree
    for part in error.path:
        around = around[part]
    taken = set(around)
    typos: dict[TreePath, str] = {}
    for key in found:
        name = None if key in known else intended_name(key, known)
        if name is not None and name not in taken:
            taken.add(name)
            typos[*error.path, key] = name
    return typos


def _rename(path: TreePath, names: Mapping[TreePath, str]) -> TreePath:
    return tuple(names.get(path[: end + 1], part) for end, part in enumerate(path))


def _correct(tree: Tree, typos: Mapping[TreePath, str], path: TreePath = ()) -> Tree:
    """Return `tree` with other names for its misspelt keys."""
    if isinstance(tree, dict):
        return {typos.get((*path, key), key): _correct(inner, typos, (*path, key)) for key, inner in tree.items()}
    if isinstance(tree, list):
        return [_correct(inner, typos, (*path, index)) for index, inner in enumerate(tree)]
    return tree


def _is_saved_value(fault: ValidationError) -> bool:
    """Return whether it is `${name}` in place of another type of a matcher's argument: the run gives it a value."""
    path, schema = tuple(fault.absolute_path), cast("Mapping[str, Tree]", fault.schema)
    if not (isinstance(fault.instance, str) and REFERENCE.fullmatch(fault.instance)) or path[0] != "steps":
        return False
    check = MATCHERS.get(str(path[-1]))
    is_of_matcher = check is not None and schema.get(str(fault.validator)) == check.grammar.get(str(fault.validator))
    is_read_as_group = schema.get("$ref") == "#/$defs/matchers"
    return (
        fault.validator in ("type", "enum")
        and fault.validator_value != "object"
        and (is_of_matcher or is_read_as_group)
    )


def _short(value: Tree) -> str:
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _describe(value: Tree) -> str:
    """Return a value for the end of a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, str):
        return f"the text '{_short(value)}'"
    word = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "the number"
    return f"{word} {_short(value)}"


def _name(error: _Violation) -> str:
    """Return what the value is called: its key, its place in a list, or the title in the schema."""
    path = error.path
    if not path:
        return f"a {error.schema.get('title', 'story')}"
    if isinstance(path[-1], int):
        owner = next((f" of '{part}'" for part in reversed(path) if isinstance(part, str)), "")
        return f"item {path[-1] + 1}{owner}"
    return f"'{path[-1]}'"


def _messages(error: _Violation) -> Iterator[tuple[TreePath, bool, str]]:
    """Yield (path, whether its key is wrong, message)."""
    if error.keyword == "additionalProperties":
        yield from _unknown_keys(error)
    elif error.of_name:
        yield (*error.path, error.found), True, _bad_name(error)
    else:
        word = _WORDS.get(error.keyword, _other)
        yield error.path, error.keyword == "required", f"{_name(error)} {word(error)}"


def _unknown_keys(error: _Violation) -> Iterator[tuple[TreePath, bool, str]]:
    named, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    known = [*named, *error.schema["examples"]] if patterns else list(named)
    noun = error.schema.get("title", "key")
    beside = MODIFIERS if noun == "step" else ()
    for key in error.found:
        if key not in named and not any(re.search(pattern, key) for pattern in patterns):
            listed = [name for name in known if name not in beside]
            said = unknown_name_message(key, "key of a story" if noun == "story" else noun, listed, beside)
            if "metrics" in named and is_metric(key):
                said = f"'{key}' is a metric: write it under `metrics:`, as in `expect: {{metrics: {{{key}: …}}}}`"
            yield (*error.path, key), True, said


def _bad_name(error: _Violation) -> str:
    noun = error.schema.get("title", "name")
    if error.keyword == "enum":
        return unknown_name_message(error.found, noun, error.wanted)
    return f"'{_short(error.found)}' is not a valid {noun}{_examples(error.schema)}"


def _examples(schema: Mapping[str, Tree]) -> str:
    examples, units = schema.get("examples", ()), schema.get("units")
    written = f"; write it like {' or '.join(f'{example!r}' for example in examples)}" if examples else ""
    return f"{written}, with the units {units}" if units else written


def _bad_type(error: _Violation) -> str:
    wanted: Sequence[str] = [error.wanted] if isinstance(error.wanted, str) else error.wanted
    hint = ""
    if "string" in wanted and isinstance(error.found, (int, float)):
        hint = "; quote it to mean a text"
    elif "array" in wanted and isinstance(error.found, dict):
        hint = "; put '- ' before each of its keys"
    elif error.schema.get("$ref") == "#/$defs/step" and str(error.found) in grammar()["$defs"]["step"]["properties"]:
        hint = f"; write '{error.found}:'"
    words = [_TYPE_WORDS[word] for word in wanted]
    return f"must be {_alternatives(words)}, but is {_describe(error.found)}{hint}"


def _alternatives(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _missing_key(error: _Violation) -> str:
    missing = [key for key in error.wanted if key not in error.found]
    near = "".join(suggestion(key, [found for found in error.found if found not in error.schema["properties"]])
                   for key in missing)  # fmt: skip
    meaning = error.schema["properties"].get(missing[0], {}).get("description", "")
    gloss = f" ({meaning[0].lower()}{meaning[1:-1]})" if meaning else ""
    return f"needs '{missing[0]}'{gloss}.{near}"


def _bad_choice(error: _Violation) -> str:
    allowed = [value if isinstance(value, str) else json.dumps(value) for value in error.wanted if value is not None]
    near = suggestion(error.found, allowed) if isinstance(error.found, str) else ""
    return f"must be one of {', '.join(allowed)}, but is {_describe(error.found)}.{near}"


def _out_of_bounds(word: str) -> Callable[[_Violation], str]:
    return lambda error: f"must be {word} {error.wanted}, but is {_short(error.found)}"


def _bad_pattern(error: _Violation) -> str:
    if not error.found.strip():
        return "must not be blank"
    noun = error.schema.get("title")
    return f"is '{_short(error.found)}', which is not a valid {noun or 'text'}{_examples(error.schema)}"


def _too_long(error: _Violation) -> str:
    count = len(error.found)
    if isinstance(error.found, dict):
        return f"may have {error.wanted or 'no'} keys, but has {count}" if error.wanted != 1 else (
            f"must have exactly one key, but has {count}: {', '.join(error.found)}")  # fmt: skip
    return f"may be {error.wanted} long, but is {count}"


def _other(error: _Violation) -> str:
    return f"is wrong: {_short(error.message)}"


_WORDS: Mapping[str, Callable[[_Violation], str]] = {
    "type": _bad_type,
    "required": _missing_key,
    "enum": _bad_choice,
    "pattern": _bad_pattern,
    "minimum": _out_of_bounds("at least"),
    "maximum": _out_of_bounds("at most"),
    "minLength": lambda _: "must not be empty",
    "minItems": lambda error: "must not be empty" if error.wanted == 1 else (
        f"must have at least {error.wanted} items"),
    "minProperties": lambda error: "must not be empty" if not error.found else "needs one key more",
    "maxProperties": _too_long,
    "maxLength": _too_long,
    "uniqueItems": lambda error: f"names something twice: {_short(error.found)}",
}  # fmt: skip
