"""Tools as a target announced them: their schemas, and the calls that break these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jsonschema import Draft202012Validator, SchemaError

from memstory.target import Json, ToolSchema


def violations_of_schema(calls: Sequence[Mapping[str, Json]], announced: Sequence[ToolSchema]) -> Iterator[str]:
    """Yield what each call violates of the schema of its tool; where nothing was announced, nothing is said."""
    schemas = {tool.name: tool.parameters for tool in announced}
    for call in calls if schemas else ():
        name = call.get("name")
        if name not in schemas:
            yield f"'{name}' was called, but only {', '.join(sorted(schemas))} were announced"
            continue
        for error in Draft202012Validator(schemas[name]).iter_errors(call.get("args") or {}):
            place = ".".join(map(str, error.absolute_path))
            yield f"'{name}' was called against its schema: {f'{place}: ' if place else ''}{error.message:.160}"


def faulty_schemas(tools: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the announced tools whose parameters are no JSON Schema."""
    for tool in tools:
        try:
            Draft202012Validator.check_schema(tool.get("parameters") or {})
        except SchemaError as error:
            yield f"'{tool.get('name')}' was announced with parameters that are no JSON Schema: {error.message:.160}"
