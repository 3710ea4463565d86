"""JSON Schemas of stories and of announced tools: what is wrong with a value, and with a schema itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from memstory.contract.target import ToolSchema, Tree

if TYPE_CHECKING:
    from jsonschema import ValidationError


def schema_faults(value: Tree, schema: Mapping[str, Tree]) -> Iterator[ValidationError]:
    """Yield an error of jsonschema for each violation of `schema` (draft 2020-12) by `value`."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (takes 0.1 s, and most runs need none)

    yield from Draft202012Validator(schema).iter_errors(value)


def invalid_schema_message(schema: Tree) -> str | None:
    """Return why `schema` is not a JSON Schema; None if it is one."""
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415  (the same)

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return error.message
    return None


def call_faults(calls: Sequence[Mapping[str, Tree]], announced: Sequence[ToolSchema]) -> Iterator[str]:
    """Yield a message for each violation by a call, {name, args}, of what was announced; none if nothing was."""
    schemas = {tool.name: tool.parameters for tool in announced}
    for call in calls if schemas else ():
        name = call.get("name")
        if name not in schemas:
            yield f"'{name}' was called, but only {', '.join(sorted(schemas))} were announced"
            continue
        for error in schema_faults(call.get("args") or {}, schemas[name]):
            place = ".".join(map(str, error.absolute_path))
            yield f"'{name}' was called against its schema: {f'{place}: ' if place else ''}{error.message:.160}"


def tool_faults(tools: Sequence[Mapping[str, Tree]]) -> Iterator[str]:
    """Yield a message for each announced tool, {name, parameters}, whose parameters are not a JSON Schema."""
    for tool in tools:
        fault = invalid_schema_message(tool.get("parameters") or {})
        if fault:
            yield f"'{tool.get('name')}' was announced with parameters that are not a JSON Schema: {fault:.160}"
