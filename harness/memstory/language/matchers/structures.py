"""Matchers of the type and structure of a value, and matchers that combine others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memstory.contract.target import Tree
from memstory.language.json_schemas import invalid_schema_message, schema_faults
from memstory.language.matchers.check import (
    NUMBER,
    VALUE,
    Context,
    Finding,
    Group,
    enumeration,
    join_findings,
    judge_group,
    matcher,
    negate,
    read_group,
    read_groups,
    read_saved_name,
    saved_value,
    show,
)
from memstory.language.matchers.contents import equals, is_number
from memstory.language.reading import Reading, TreePath
from memstory.language.story import Matcher

_TYPES: Mapping[str, Callable[[Tree], bool]] = {
    "text": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "list": lambda value: isinstance(value, list),
    "mapping": lambda value: isinstance(value, Mapping),
}
_JSON_TYPES = {"string": "text", "array": "list", "object": "mapping"}
_ALTERNATIVES = {**VALUE, "items": {**VALUE, "minProperties": 1}, "minItems": 1, "minProperties": 1}


def _read_type(_reading: Reading, name: str | None, _path: TreePath) -> str:
    # Unquoted, YAML reads the word null as nothing.
    return _JSON_TYPES.get(name, name) if name else "null"


@matcher(
    "type",
    summary="is a text, number, integer, boolean, null, list or mapping (or JSON Schema's string, array, object)",
    grammar={"title": "type", "enum": [*_TYPES, None, *_JSON_TYPES]},
    read=_read_type,
    example="{type: list}",
    fits=[1],
    misfits="1",
)
def _type(value: Tree, name: Tree, _context: Context) -> Finding:
    # A saved name may have put anything here.
    holds = name in _TYPES and _TYPES[name](value)
    says = f"is {'of' if holds else 'not of'} type {name}: {show(value)}"
    return Finding(holds=holds, says=says, expected=f"type {name}", actual=show(value))


def _read_schema(reading: Reading, schema: Tree, path: TreePath) -> Tree:
    fault = invalid_schema_message(schema)
    if fault:
        reading.fault(path, f"'json_schema' takes a JSON Schema, which this is not: {fault:.120}")
    return schema


@matcher(
    "json_schema",
    summary="is valid against this JSON Schema",
    grammar={"type": "object", "minProperties": 1},
    read=_read_schema,
    example="{json_schema: {required: [id]}}",
    fits={"id": "m1"},
    misfits={"key": "tea"},
)
def _json_schema(value: Tree, schema: Mapping[str, Tree], _context: Context) -> Finding:
    faults = [
        f"{'.'.join(map(str, error.absolute_path)) or 'it'}: {error.message:.120}"
        for error in schema_faults(value, schema)
    ]
    says = f"does not fit the JSON Schema: {'; '.join(faults[:3])}" if faults else "fits the JSON Schema"
    return Finding(holds=not faults, says=says, expected="valid by the JSON Schema", actual=show(value))


@matcher(
    "length",
    summary="characters of a text, elements of a list, keys of a mapping: a number or matchers",
    grammar=NUMBER,
    read=read_group,
    example="{length: {le: 2}}",
    fits=["a", "b"],
    misfits="abc",
)
def _length(value: Tree, wanted: Group, context: Context) -> Finding:
    if not isinstance(value, (str, list, Mapping)):
        return Finding(holds=False, says=f"has no length: it is {show(value)}", actual=show(value))
    found = judge_group(len(value), wanted, context)
    return Finding(
        holds=found.holds, says=f"has a length that {found.says}", expected=found.expected, actual=show(value)
    )


@matcher(
    "fields",
    summary="a mapping: these keys match, other keys are allowed",
    grammar={"type": "object", "minProperties": 1, "additionalProperties": VALUE},
    read=read_groups,
    example="{fields: {type: fact}}",
    fits={"type": "fact", "id": "m1"},
    misfits={"type": "rule"},
)
def _fields(value: Tree, wanted: Mapping[str, Group], context: Context) -> Finding:
    if not isinstance(value, Mapping):
        return Finding(holds=False, says=f"has no fields: it is {show(value)}", expected=f"has {enumeration(wanted)}",
                       actual=show(value))  # fmt: skip
    findings = []
    for name, matchers in wanted.items():
        if name not in value:
            has = enumeration(value)
            findings.append(Finding(holds=False, says=f"has no '{name}' (it has {has})", actual=show(value)))
            continue
        found = judge_group(value[name], matchers, context)
        findings.append(Finding(holds=found.holds, says=f"'{name}' {found.says}", expected=found.expected,
                                actual=found.actual, difference=found.difference))  # fmt: skip
    return join_findings(findings)


@matcher(
    "not",
    summary="does not hold",
    grammar={**VALUE, "minProperties": 1},
    read=read_group,
    example="{not: {contains: tea}}",
    fits="coffee",
    misfits="tea",
)
def _not(value: Tree, refused: Group, context: Context) -> Finding:
    return negate(judge_group(value, refused, context))


def _alternatives(reading: Reading, argument: Tree, path: TreePath) -> Group | tuple[Group, ...]:
    if not isinstance(argument, list):
        return read_group(reading, argument, path)
    return tuple(read_group(reading, inner, (*path, index)) for index, inner in enumerate(argument))


def _elements(value: Tree) -> list[Tree] | None:
    return value if isinstance(value, list) else list(value.values()) if isinstance(value, Mapping) else None


@matcher(
    "all",
    summary="a list: every one of these holds; otherwise: holds for every element of a list",
    grammar=_ALTERNATIVES,
    read=_alternatives,
    example="{all: {starts_with: m}}",
    fits=["m1", "m2"],
    misfits=["m1", "x"],
)
def _all(value: Tree, argument: Any, context: Context) -> Finding:
    if not isinstance(argument[0], Matcher):
        return join_findings([judge_group(value, one, context) for one in argument])
    elements = _elements(value)
    if not elements:
        says = "has no elements of which it could hold" if elements is not None else f"is not a list: {show(value)}"
        return Finding(holds=False, says=says, actual=show(value))
    findings = [judge_group(element, argument, context) for element in elements]
    failing = [f"element {number} {found.says}" for number, found in enumerate(findings, 1) if not found.holds]
    says = "; ".join(failing[:3]) if failing else f"has {len(elements)} elements of which each {findings[0].says}"
    return Finding(holds=not failing, says=says, actual=show(value))


@matcher(
    "any",
    summary="a list: at least one of these holds; otherwise: holds for some element of a list",
    grammar=_ALTERNATIVES,
    read=_alternatives,
    example="{any: [{contains: tea}, {contains: coffee}]}",
    fits="coffee",
    misfits="juice",
)
def _any(value: Tree, argument: Any, context: Context) -> Finding:
    if isinstance(argument[0], Matcher):
        findings = [judge_group(element, argument, context) for element in _elements(value) or ()]
        nothing = "has no element of which it holds"
    else:
        findings = [judge_group(value, one, context) for one in argument]
        nothing = "fits no alternative"
    holding = next((found for found in findings if found.holds), None)
    if holding:
        return Finding(holds=True, says=holding.says, actual=show(value))
    tried = "; ".join(found.says for found in findings[:3])
    return Finding(holds=False, says=f"{nothing}: {tried or show(value)}", actual=show(value))


@matcher(
    "same_as",
    summary="equals what an earlier step saved under this name",
    grammar={"type": "string", "minLength": 1},
    read=read_saved_name,
    example="{same_as: first}",
    fits="m1",
    misfits="m2",
)
def _same_as(value: Tree, name: str, context: Context) -> Finding:
    before, now = (inner.get("files", inner) if isinstance(inner, Mapping) else inner
                   for inner in (saved_value(name, context.names), value))  # fmt: skip
    found = equals(now, before, context)
    says = f"is the same as '{name}'" if found.holds else f"is not the same as '{name}'"
    return Finding(
        holds=found.holds, says=says, expected=found.expected, actual=found.actual, difference=found.difference
    )


def _read_texts_in_files(reading: Reading, texts: Sequence[str], path: TreePath) -> Sequence[str]:
    """Return the texts; a fault where nothing is searched for them: only right below `data` are they."""
    if "expect" in path and path[-2] != "data":
        message = "'none_contain' speaks of the files of {inspect: files}; of a text, say {not: {contains_any: […]}}"
        reading.fault(path, message, at_key=True)
    return texts


@matcher(
    "none_contain",
    summary="inspect files: no file contains any of these texts",
    grammar={"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    example="{none_contain: [my secret]}",
    fits={"containing": {"my secret": []}},
    misfits={"containing": {"my secret": ["a.db"]}},
    read=_read_texts_in_files,
)
def _none_contain(value: Tree, texts: Sequence[str], _context: Context) -> Finding:
    containing = value.get("containing", {}) if isinstance(value, Mapping) else {}
    found = [f"{show(text)} is in {enumeration(containing[text])}" for text in texts if containing.get(text)]
    unsearched = [text for text in texts if text not in containing]
    if unsearched:
        found.append(f"was not searched for {enumeration(unsearched)}")
    says = "; ".join(found) if found else f"has {enumeration(texts)} in no file"
    return Finding(
        holds=not found, says=says, expected=f"{enumeration(texts)} in no file", actual="; ".join(found) or None
    )
