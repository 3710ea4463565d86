"""Pieces of grammar that several words share."""

from __future__ import annotations

from typing import TypeAlias

from memstory.contract.target import Tree

Schema: TypeAlias = dict[str, Tree]


def text(description: str, **more: Tree) -> Schema:
    """Return the grammar of a text."""
    return {"description": description, "type": "string", **more}


def name_of(description: str) -> Schema:
    """Return the grammar of a text that must not be empty."""
    return text(description, minLength=1)


def number(description: str, **more: Tree) -> Schema:
    """Return the grammar of a number."""
    return {"description": description, "type": "number", **more}


def count(description: str, **more: Tree) -> Schema:
    """Return the grammar of a whole number, from 0 on unless `more` says otherwise."""
    return {"description": description, "type": "integer", "minimum": 0, **more}


def choice(description: str, *values: str) -> Schema:
    """Return the grammar of one of some words."""
    return {"description": description, "enum": list(values)}


def free(description: str, **more: Tree) -> Schema:
    """Return the grammar of a mapping of any keys."""
    return {"description": description, "type": "object", **more}


def listing(description: str, items: Schema, **more: Tree) -> Schema:
    """Return the grammar of a list."""
    return {"description": description, "type": "array", **more, "items": items}


def keys(title: str, properties: Schema, *required: str, **more: Tree) -> Schema:
    """Return the grammar of a mapping of these keys and no others."""
    needed = {"required": list(required)} if required else {}
    return {"title": title, **more, **needed, "additionalProperties": False, "properties": properties}


NAME_PATTERN: Schema = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "examples": ["near", "first_fact"]}
NAME: Schema = {"$ref": "#/$defs/name"}
STEP: Schema = {"type": "object", "$ref": "#/$defs/step"}
NOTHING: Schema = {"type": ["null", "object", "boolean"], "maxProperties": 0}
VECTOR = listing("The numbers that stand for this text.", {"type": "number"}, minItems=1)
KIND = text("The kind of memory.")
KINDS: Schema = {
    "description": "Kinds of memories, as the target calls them.",
    "type": ["string", "array"],
    "items": {"type": "string"},
}
