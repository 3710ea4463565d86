"""The grammar of stories: the keys of `story.head.json`, with every word and check as it declares itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from memstory.contract.target import Tree
from memstory.language.matchers import CALL_CHECKS, EXPECTABLE, HIT_CHECKS, HIT_FIELDS, MATCHERS, METRICS
from memstory.language.matchers.calls import CALL
from memstory.language.matchers.check import NUMBER, VALUE, Check
from memstory.language.registry import Registry
from memstory.language.words import WORDS
from memstory.language.words.shapes import Schema, Vector, grammar_of
from memstory.language.words.step_parsing import MODIFIERS
from memstory.language.words.times import DURATION

_WIDTH: Final = 150


def mapping_of(title: str, properties: Schema, **more: Tree) -> Schema:
    """Return the grammar of a mapping of these keys and no others."""
    return {"title": title, **more, "additionalProperties": False, "properties": properties}


def grammar_version() -> tuple[int, ...]:
    """Return a key for caches of what is made from the grammar: it changes with each word and check."""
    registries: tuple[Registry[Any], ...] = (WORDS, MATCHERS, HIT_CHECKS, CALL_CHECKS, EXPECTABLE, METRICS)
    return tuple(registry.changes for registry in registries)


def grammar() -> Mapping[str, Tree]:
    """Return the JSON Schema of a story (draft 2020-12), with the words and checks that are registered now."""
    return _grammar(grammar_version())


@lru_cache(maxsize=1)
def _grammar(_changes: tuple[int, ...]) -> Mapping[str, Tree]:
    head: Mapping[str, Tree] = json.loads(files("memstory.language").joinpath("story.head.json").read_text("utf-8"))
    return {**head, "$defs": {"metrics": _metrics(), **_step_parts(), **_expectation_parts()}}


def _metrics() -> Schema:
    cut, whole = ("|".join(one.name for one in METRICS.values() if one.is_cut is kind) for kind in (True, False))
    return {
        "title": "metric", "description": "Bounds of metrics, such as {recall@5: {ge: 0.95}}.",
        "type": "object", "minProperties": 1, "additionalProperties": False,
        "patternProperties": {f"^(({cut})@[1-9][0-9]{{0,3}}|{whole})$": NUMBER},
        "examples": [f"{one.name}@5" if one.is_cut else one.name for one in METRICS.values()],
    }  # fmt: skip


def _step_parts() -> Schema:
    words = {word.name: {"description": _sentence(word.summary, word.forms), **word.grammar} for word in WORDS.values()}
    expected = {one.name: {"description": _sentence(one.summary), **one.grammar} for one in EXPECTABLE.values()}
    return {
        "name": {
            "title": "name", "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "examples": ["language", "top_k"],
        },
        "vector": grammar_of(Vector),
        "duration": DURATION,
        "step": mapping_of("step", {**MODIFIERS, **words}, description="One operation, with modifiers."),
        "expect": mapping_of("expected field", expected, type="object", minProperties=1),
    }  # fmt: skip


def _expectation_parts() -> Schema:
    return {
        "hits": mapping_of("check of hits", _grammar_of_checks(HIT_CHECKS), type="object", minProperties=1),
        "hit_fields": mapping_of("field of a hit", dict(HIT_FIELDS), minProperties=1),
        "tool_calls": mapping_of(
            "check of tool calls", _grammar_of_checks(CALL_CHECKS),
            type=["array", "object"], minProperties=1, items={"$ref": "#/$defs/call"},
        ),
        "call": CALL,
        "textual": {"type": ["string", "object"], "$ref": "#/$defs/matchers"},
        "number": {"type": ["number", "object"], "$ref": "#/$defs/matchers"},
        "value": {"properties": _grammar_of_checks(MATCHERS), "additionalProperties": VALUE},
        "matchers": {
            "minProperties": 1, "propertyNames": {"title": "matcher", "enum": list(MATCHERS)}, **VALUE,
        },
    }  # fmt: skip


def _grammar_of_checks(checks: Registry[Check]) -> Schema:
    return {one.name: {"description": _sentence(one.summary), **one.grammar} for one in checks.values()}


def _sentence(summary: str, forms: str = "") -> str:
    text = f"{summary}: {forms}" if forms else summary
    return f"{text[0].upper()}{text[1:]}."


def schema_text() -> str:
    """Return the grammar as the text of `story.schema.json`."""
    return f"{_json_lines(grammar(), '')}\n"


def _json_lines(value: Tree, indent: str) -> str:
    """Return JSON in lines of at most `_WIDTH`; a part that needs several lines shares none."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(flat) <= _WIDTH:
        return flat
    deeper = f"{indent}  "
    pairs = value.items() if isinstance(value, dict) else (("", inner) for inner in value)
    lines: list[str] = []
    for key, inner in pairs:
        part = f"{json.dumps(key)}: " * bool(key) + _json_lines(inner, deeper)
        if lines and "\n" not in lines[-1] + part and len(deeper) + len(lines[-1]) + len(part) < _WIDTH:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f",\n{deeper}".join([f"{opening}\n{deeper}{lines[0]}", *lines[1:]]) + f"\n{indent}{closing}"
