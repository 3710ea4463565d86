"""`story.schema.json` as the one grammar: a tree is held against it, and every violation is put into an author's words."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from jsonschema import Draft202012Validator, ValidationError

from memstory.errors import StoryError
from memstory.target import Json
from memstory.yaml_source import Document, TreePath

_SHOWN = 60
_TYPE_WORDS: Mapping[str, str] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


@cache
def grammar() -> Mapping[str, Json]:
    """Return the JSON Schema of a story."""
    schema: Mapping[str, Json] = json.loads(files("memstory").joinpath("story.schema.json").read_text("utf-8"))
    return schema


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(grammar())


def violations(tree: Json, document: Document) -> Iterator[tuple[TreePath, StoryError]]:
    """Yield all that the grammar has against `tree`, each with the path of the part that is wrong."""
    for error in _validator().iter_errors(tree):
        path: TreePath = tuple(error.absolute_path)
        for inner, is_key, message in _messages(error, path):
            mark = document.at_key(inner) if is_key else document.at(inner)
            yield inner, StoryError(message, mark)


def nearest(found: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the known name that `found` looks like, or an empty text.

    >>> nearest("contians", ["contains", "equals"])
    " Did you mean 'contains'?"
    >>> nearest("zzz", ["contains"])
    ''
    """
    names = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(found.casefold(), names, n=1, cutoff=0.6)
    return f" Did you mean '{names[close[0]]}'?" if close else ""


def unknown(found: str, noun: str, known: Iterable[str]) -> str:
    """Return the message for a name that nothing bears: what was found, what is near, what is known."""
    names = sorted(known)
    return f"unknown {noun} '{_short(found)}'.{nearest(found, names)} Known: {', '.join(names)}."


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _shown(value: Json) -> str:
    """What was found, for the end of a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, str):
        return f"the text '{_short(value)}'"
    word = {dict: "a mapping", list: "a list"}.get(type(value), "the number")
    return f"{word} {_short(value)}"


def _name(error: ValidationError, path: TreePath) -> str:
    """What the part is called: its key, its place in a list, or the noun of the schema."""
    if not path:
        return f"a {error.schema.get('title', 'story')}"
    if isinstance(path[-1], int):
        owner = next((f" of '{part}'" for part in reversed(path) if isinstance(part, str)), "")
        return f"item {path[-1] + 1}{owner}"
    return f"'{path[-1]}'"


def _messages(error: ValidationError, path: TreePath) -> Iterator[tuple[TreePath, bool, str]]:
    """Yield (path, whether its key is meant, message)."""
    keyword = error.validator
    if keyword == "additionalProperties":
        yield from _unknown_keys(error, path)
    elif "propertyNames" in error.absolute_schema_path:
        yield (*path, error.instance), True, _wrong_name(error)
    else:
        word = _WORDS.get(str(keyword), _other)
        yield path, keyword == "required", f"{_name(error, path)} {word(error)}"


def _unknown_keys(error: ValidationError, path: TreePath) -> Iterator[tuple[TreePath, bool, str]]:
    named, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    known = [*named, *error.schema["examples"]] if patterns else list(named)
    noun = error.schema.get("title", "key")
    for key in error.instance:
        if key not in named and not any(re.search(pattern, key) for pattern in patterns):
            yield (*path, key), True, unknown(key, "key of a story" if noun == "story" else noun, known)


def _wrong_name(error: ValidationError) -> str:
    noun = error.schema.get("title", "name")
    if error.validator == "enum":
        return unknown(error.instance, noun, error.validator_value)
    return f"'{_short(error.instance)}' is no {noun}{_examples(error.schema)}"


def _examples(schema: Mapping[str, Json]) -> str:
    examples = schema.get("examples", ())
    return f"; write it like {' or '.join(f'{example!r}' for example in examples)}" if examples else ""


def _wrong_type(error: ValidationError) -> str:
    wanted: Sequence[str] = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
    hint = ""
    if "string" in wanted and isinstance(error.instance, (int, float)):
        hint = "; quote it to mean a text"
    words = [_TYPE_WORDS[word] for word in wanted]
    return f"must be {_listed(words)}, but is {_shown(error.instance)}{hint}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _required(error: ValidationError) -> str:
    missing = [key for key in error.validator_value if key not in error.instance]
    near = "".join(nearest(key, [found for found in error.instance if found not in error.schema["properties"]])
                   for key in missing)  # fmt: skip
    meaning = error.schema["properties"].get(missing[0], {}).get("description", "")
    gloss = f" ({meaning[0].lower()}{meaning[1:-1]})" if meaning else ""
    return f"needs '{missing[0]}'{gloss}.{near}"


def _enumerated(error: ValidationError) -> str:
    allowed = [value if isinstance(value, str) else json.dumps(value) for value in error.validator_value]
    near = nearest(error.instance, allowed) if isinstance(error.instance, str) else ""
    return f"must be one of {', '.join(allowed)}, but is {_shown(error.instance)}.{near}"


def _bound(word: str) -> Callable[[ValidationError], str]:
    return lambda error: f"must be {word} {error.validator_value}, but is {_short(error.instance)}"


def _ill_formed(error: ValidationError) -> str:
    if not error.instance.strip():
        return "must not be blank"
    noun = error.schema.get("title")
    return f"is '{_short(error.instance)}', which is no {noun or 'such text'}{_examples(error.schema)}"


def _too_long(error: ValidationError) -> str:
    count = len(error.instance)
    if isinstance(error.instance, dict):
        return f"may have {error.validator_value or 'no'} keys, but has {count}" if error.validator_value != 1 else (
            f"must have exactly one key, but has {count}: {', '.join(error.instance)}")  # fmt: skip
    return f"may be {error.validator_value} long, but is {count}"


def _other(error: ValidationError) -> str:
    return f"is wrong: {_short(error.message)}"


_WORDS: Mapping[str, Callable[[ValidationError], str]] = {
    "type": _wrong_type,
    "required": _required,
    "enum": _enumerated,
    "pattern": _ill_formed,
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "minLength": lambda _: "must not be empty",
    "minItems": lambda error: "must not be empty" if error.validator_value == 1 else (
        f"must have at least {error.validator_value} items"),
    "minProperties": lambda error: "must not be empty" if not error.instance else "needs one key more",
    "maxProperties": _too_long,
    "maxLength": _too_long,
    "uniqueItems": lambda error: f"names something twice: {_short(error.instance)}",
}  # fmt: skip
