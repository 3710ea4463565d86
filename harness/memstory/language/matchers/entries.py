"""A hit as a story names it, by a saved name or by its fields: its grammar, its reading, and which hits are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from memstory.contract.errors import MissingValue
from memstory.contract.target import Capability, Tree
from memstory.language.matchers.check import Group, together
from memstory.language.matchers.finding import Context, show
from memstory.language.matchers.groups import NUMBER, TEXTUAL, VALUE, groups, saved_name
from memstory.language.reading import Reading, TreePath
from memstory.language.story import Matcher

Hits: TypeAlias = Sequence[Mapping[str, Tree]]
Entry: TypeAlias = str | Mapping[str, Group]

HIT_FIELDS: Mapping[str, Mapping[str, Tree]] = {
    "id": {"description": "Its id.", **VALUE},
    "text": {"description": "Its text.", **TEXTUAL},
    "score": {"description": "Its score; higher is better.", **NUMBER},
    "kind": {"description": "Its kind.", **VALUE},
    "key": {"description": "Its key.", **VALUE},
    "created_at": {"description": "When it was stored.", **VALUE},
    "metadata": {"description": "What was stored with it.", **VALUE},
    "explain": {"description": "How its score was computed.", **VALUE},
}
"""The grammar of each field of a hit, which is what its matchers are about."""

HIT = {"type": ["string", "object"], "$ref": "#/$defs/hit_fields"}
SOME_HITS = {**HIT, "type": ["string", "object", "array"], "minItems": 1, "items": HIT}

_NEEDS: Mapping[str, Capability] = {"score": "search.scores", "explain": "search.explain"}
_LISTED = 10
_SHORT = 40
_BY_TEXT = " (matched by text, since the backend gave no ids)"


def describe(hits: Hits, context: Context) -> str:
    """Return the hits for a person, by their saved names where they have one."""
    labels = [f"{number}. {_label(hit, context)}" for number, hit in enumerate(hits[:_LISTED], 1)]
    more = f" … {len(hits)} in all" if len(hits) > _LISTED else ""
    return "; ".join(labels) + more or "no hits"


def _label(hit: Mapping[str, Tree], context: Context) -> str:
    name = next((name for name, value in context.names.items() if value is not None and value == hit.get("id")), None)
    score = hit.get("score")
    shown = f" ({score:.4g})" if isinstance(score, float) else ""
    return f"{name or show(hit.get('text'), 60)}{shown}"


def said_of(entry: Entry, hits: Hits, context: Context) -> str:
    """Return an entry for a sentence; MissingValue if it names nothing: whatever were said of that would hold."""
    if not isinstance(entry, str):
        return "a hit whose " + " and ".join(f"{field} {_condition(group)}" for field, group in entry.items())
    if saved_id(entry, context) is None and entry not in context.contents:
        raise MissingValue(f"nothing was saved as '{entry}'")
    return f"'{entry}'" + (_BY_TEXT if hits and _by_text(entry, hits, context) else "")


def _condition(group: Group) -> str:
    return " and ".join(f"{one.name} {_argument(one.argument)}" for one in group)


def _argument(argument: Any) -> str:
    if isinstance(argument, tuple) and all(isinstance(one, Matcher) for one in argument):
        return f"({_condition(argument)})"
    if isinstance(argument, Mapping):
        return f"({', '.join(f'{key} {_argument(inner)}' for key, inner in argument.items())})"
    return show(argument, _SHORT)


def _by_text(name: str, hits: Hits, context: Context) -> bool:
    return name in context.contents and (saved_id(name, context) is None or all(hit.get("id") is None for hit in hits))


def saved_id(name: str, context: Context) -> Tree:
    """Return the id that a saved name stands for."""
    value = context.names.get(name)
    return value.get("id") if isinstance(value, Mapping) else value


def is_entry(hit: Mapping[str, Tree], entry: Entry, hits: Hits, context: Context) -> bool:
    """Return whether `hit` is the one that `entry` means."""
    if not isinstance(entry, str):
        return together(dict(hit), [fields_of(entry)], context).holds
    if _by_text(entry, hits, context):
        return hit.get("text") == context.contents[entry]
    saved = saved_id(entry, context)
    return saved is not None and hit.get("id") == saved


def fields_of(entry: Mapping[str, Group]) -> Matcher:
    """Return the matcher of an entry that is written by its fields."""
    mark = next(iter(entry.values()))[0].mark
    return Matcher(name="fields", argument=entry, mark=mark)


def read_entries(reading: Reading, argument: Tree, path: TreePath) -> tuple[Entry, ...]:
    """Return the entries of a list, or the only one."""
    if isinstance(argument, list):
        return tuple(_entry(reading, entry, (*path, index)) for index, entry in enumerate(argument))
    return (_entry(reading, argument, path),)


def _entry(reading: Reading, entry: Tree, path: TreePath) -> Entry:
    return saved_name(reading, entry, path) if isinstance(entry, str) else groups(reading, entry, path)


def needs_of_entries(entries: Sequence[Entry]) -> frozenset[Capability]:
    """Return what a search must be able to do for these entries."""
    fields = {field for entry in entries if not isinstance(entry, str) for field in entry}
    return frozenset(_NEEDS[field] for field in _NEEDS.keys() & fields)
