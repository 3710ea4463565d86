"""What somebody's method returned -> hits and ids: texts, mappings, objects, pairs, and lists of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Integral, Real
from typing import Any, Final
from uuid import UUID

from memstory.contract.errors import TargetError
from memstory.contract.target import Hit, Json
from memstory.targets.objects.names import FIELDS, LISTS, plain

_SHOWN: Final = 120
_PAIR: Final = 2
_DONE: Final = frozenset({"ok", "done", "stored", "saved", "added", "success", "true"})
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedHit:
    """A hit, with its id as the object gave it: a number stays a number."""

    hit: Hit
    id: Any = None


def found_in(value: Any, where: str) -> Sequence[ParsedHit]:
    """Return the hits of what a method `where` returned; None is none.

    Raises:
        TargetError: it is nothing of which a text can be read.
    """
    if isinstance(value, tuple) and value and isinstance(value[0], list):
        value = value[0]  # with a word on the search, or a count, behind the hits
    if value is None or value == "":
        return ()
    if isinstance(value, Mapping) and not _has(value, "text"):
        listed = _first(value, LISTS)
        if listed is not _NOTHING:
            return found_in(listed, where)
        if value and all(isinstance(one, str) for one in value.values()):
            return [ParsedHit(id=key, hit=Hit(id=str(key), text=text)) for key, text in value.items()]
        return [] if not value else [_parse_one(value, where)]
    if _is_list(value):
        return [_parse_one(one, where) for one in value]
    listed = _NOTHING if isinstance(value, str) or _has(value, "text") else _first(value, LISTS)
    return [_parse_one(value, where)] if listed is _NOTHING else found_in(listed, where)


def one_in(value: Any, where: str) -> ParsedHit | None:
    """Return the one memory that a method returned, None for nothing."""
    if type(value) is tuple and value:
        return _of_tuple(value, where)
    found = found_in(value, where)
    return found[0] if found else None


def ids_in(value: Any) -> Sequence[Any]:
    """Return the ids that an `add` returned; none where it gave none, such as for None or a sentence.

    >>> ids_in("m1"), ids_in({"id": 7}), ids_in({"results": [{"id": "a"}, {"id": "b"}]}), ids_in("It is stored.")
    (['m1'], [7], ['a', 'b'], [])
    """
    if value is None or isinstance(value, (bool, float)):
        return []
    if isinstance(value, str):
        return [] if not value or _is_sentence(value) or value.lower() in _DONE else [value]
    if isinstance(value, (Integral, UUID)):
        return [value]
    own = _first(value, FIELDS["id"])
    if own is not _NOTHING and own is not None:
        return [own]
    if _is_list(value):
        return [id_ for one in value for id_ in ids_in(one)]
    listed = _first(value, (*LISTS, "ids", "memory_ids"))
    return [] if listed is _NOTHING else ids_in(listed)


def truth_of(value: Any) -> bool:
    """Return what the answer of a deletion means: None, of one that raised nothing, is yes, and so is a message."""
    return True if value is None else bool(value)


def _parse_one(value: Any, where: str) -> ParsedHit:
    if isinstance(value, str):
        return ParsedHit(hit=Hit(id=None, text=value))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return _of_tuple(value, where)
    text = _first(value, FIELDS["text"])
    if text is not _NOTHING and text is not None and not isinstance(text, str):
        inner = _parse_one(text, where)  # such as the document beside its score
        return _with(inner, value)
    if not isinstance(text, str):
        raise TargetError(f"{where} returned {_shorten(value)}: no text is in it. {_ADVICE}")
    return _with(ParsedHit(hit=Hit(id=None, text=text)), value)


_ADVICE: Final = f"A hit is a text, or has one of {', '.join(FIELDS['text'])}"


def _of_tuple(value: tuple[Any, ...], where: str) -> ParsedHit:
    """Return the hit of `(text, score)`, `(score, text)`, or `(id, text)` with a score or metadata behind it."""
    rest = list(value)
    score = metadata = None
    if len(rest) > 1 and isinstance(rest[-1], Real):
        score = _number(rest.pop())
    elif len(rest) > 1 and isinstance(rest[0], float):
        score = _number(rest.pop(0))
    if len(rest) > 1 and isinstance(rest[-1], Mapping):
        metadata = _metadata(rest.pop())
    if len(rest) == _PAIR and _is_sentence(rest[0]) and not _is_sentence(rest[1]):
        rest.reverse()
    if not rest or len(rest) > _PAIR:
        said = "of a tuple memstory reads (text, score), (id, text) and (id, text, score)"
        raise TargetError(f"{where} returned {_shorten(value)}: {said}; return mappings with 'id' and 'text' instead")
    inner = _parse_one(rest[-1], where)
    id_ = rest[0] if len(rest) == _PAIR else inner.id
    hit = replace(inner.hit, id=None if id_ is None else str(id_))
    if score is not None:
        hit = replace(hit, score=score)
    return ParsedHit(id=id_, hit=hit if metadata is None else replace(hit, metadata=metadata))


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and any(map(str.isspace, value))


def _with(inner: ParsedHit, value: Any) -> ParsedHit:
    """Return the hit with what `value` has beside its text."""
    parts = {name: _first(value, names) for name, names in FIELDS.items()}
    has = {name: part for name, part in parts.items() if part is not _NOTHING and part is not None}
    id_ = has.get("id", inner.id)
    score = inner.hit.score
    if "score" in has:
        score = _number(has["score"])
    elif "distance" in has and (distance := _number(has["distance"])) is not None:
        score = -distance
    return ParsedHit(
        id=id_,
        hit=Hit(
            id=None if id_ is None else str(id_),
            text=inner.hit.text,
            score=score,
            metadata=_metadata(has["metadata"]) if "metadata" in has else inner.hit.metadata,
            created_at=_moment(has.get("created_at")) or inner.hit.created_at,
        ),
    )


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def _moment(value: Any) -> str | None:
    if value is None or isinstance(value, (str, int, float)):
        return None if value is None else str(value)
    return str(value.isoformat()) if hasattr(value, "isoformat") else None


def _metadata(value: Any) -> Mapping[str, Json]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return {str(name): _json(one) for name, one in value.items()} if isinstance(value, Mapping) else {}


def _json(value: Any) -> Json:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _json(one) for name, one in value.items()}
    return [_json(one) for one in value] if isinstance(value, (list, tuple, set)) else str(value)


def _has(value: Any, field: str) -> bool:
    return _first(value, FIELDS[field]) is not _NOTHING


def _first(value: Any, names: Iterable[str]) -> Any:
    """Return the first part of a mapping, a row or an object that has one of these names."""
    if _is_mapping(value):
        parts = {plain(name): name for name in value.keys() if isinstance(name, str)}  # noqa: SIM118  (a row of sqlite3 is no mapping)
        own = next((parts[plain(name)] for name in names if plain(name) in parts), None)
        return _NOTHING if own is None else value[own]
    for name in names:
        part = getattr(value, name, _NOTHING)
        if part is not _NOTHING and not callable(part):
            return part
    return _NOTHING


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


def _is_list(value: Any) -> bool:
    is_many = hasattr(value, "__iter__") and not isinstance(value, (str, bytes)) and not _is_mapping(value)
    return is_many and not hasattr(value, "_fields") and not _has(value, "text")


def _shorten(value: Any) -> str:
    is_plain = repr(value) == object.__repr__(value)  # which is an address
    text = f"with {', '.join(getattr(value, '__dict__', ())) or 'no attribute'}" if is_plain else repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= _SHOWN else f"{type(value).__name__} {text[:_SHOWN]}…"
