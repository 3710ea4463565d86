"""The arguments of a model, checked against the schema that it was shown."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.contract.values import ToolSchema, Tree
from memstory_reference.errors import InputError

_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def check_arguments(spec: ToolSchema, arguments: object) -> dict[str, Tree]:
    """Return the arguments if they fit the tool's schema, else raise InputError with all that is wrong.

    Null stands for an argument that was left out: models fill in both of two optional arguments.
    """
    if not isinstance(arguments, Mapping):
        raise InputError(f"{spec.name}: the arguments must be an object, not {_type_name(arguments)}")
    known: Mapping[str, Mapping[str, Tree]] = spec.parameters.get("properties", {})
    given = {str(name): value for name, value in arguments.items() if value is not None}
    problems = [f"{name} is missing" for name in spec.parameters.get("required", ()) if name not in given]
    problems += [f"{name[:40]!r} is not an argument" for name in given if name not in known]
    problems += [
        f"{name} must be {known[name]['type']}, not {_type_name(value)}"
        for name, value in given.items()
        if name in known and not _fits(value, known[name].get("type"))
    ]
    if problems:
        raise InputError(f"{spec.name}: {'; '.join(problems)}. Arguments: {', '.join(known)}")
    return given


def _fits(value: Tree, wanted: str | None) -> bool:
    if wanted is None:
        return True
    # To Python, True is an int; to JSON it is not.
    return isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, types in _TYPES.items() if isinstance(value, types)), type(value).__name__)
