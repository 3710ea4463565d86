"""Checks of what a retrieval brought back: which memories, in which order, with which scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from memstory.language.matchers.check import (
    MATCHERS,
    About,
    Check,
    Group,
    Judge,
    declared_in,
    joined,
    negated,
    read_checks,
    together,
)
from memstory.language.matchers.finding import Context, Finding, show
from memstory.language.matchers.groups import NUMBER, TEXTUAL, VALUE, group, groups, saved_name
from memstory.language.reading import Reading
from memstory.language.registry import Registry
from memstory.language.story import Matcher
from memstory.language.text import TreePath
from memstory.target import Capability, Json

Hits: TypeAlias = Sequence[Mapping[str, Json]]
Entry: TypeAlias = str | Mapping[str, Group]

HIT_CHECKS: Registry[Check] = Registry("check of hits")
HIT_FIELDS: Mapping[str, Mapping[str, Json]] = {
    "id": {"description": "Its id.", **VALUE},
    "text": {"description": "Its text.", **TEXTUAL},
    "score": {"description": "Its score; higher is better.", **NUMBER},
    "kind": {"description": "Its kind.", **VALUE},
    "key": {"description": "Its key.", **VALUE},
    "created_at": {"description": "When it was stored.", **VALUE},
    "metadata": {"description": "What was kept with it.", **VALUE},
    "explain": {"description": "How its score came about.", **VALUE},
}
"""The grammar of each field of a hit, which is what its matchers are about."""

_HIT = {"type": ["string", "object"], "$ref": "#/$defs/hit_fields"}
_SOME_HITS = {**_HIT, "type": ["string", "object", "array"], "minItems": 1, "items": _HIT}

_LISTED = 10
_BY_TEXT = " (matched by text, since the backend gave no ids)"


def hit_check(name: str, **about: Unpack[About]) -> Callable[[Judge], Judge]:
    """Make a function a check of hits."""
    return declared_in(HIT_CHECKS, name, about)


def read_hit_checks(reading: Reading, checks: Mapping[str, Json], path: TreePath) -> Group:
    """Return the checks of a list of hits; their arguments are as `memstory.language.story.Matcher` describes."""
    return read_checks(HIT_CHECKS, reading, checks, path)


def judge_hits(hits: Hits, one: Matcher, context: Context) -> Finding:
    """Judge one check on a list of hits, best first."""
    return HIT_CHECKS[one.name].judge(hits, one.argument, context)


def needs_of_hit_checks(checks: Sequence[Matcher]) -> frozenset[Capability]:
    """Return what a search must be able to do for these checks."""
    return frozenset().union(*(HIT_CHECKS[one.name].needs(one.argument) for one in checks))


def describe(hits: Hits, context: Context) -> str:
    """Return the hits for a person, by their saved names where they have one."""
    labels = [f"{number}. {_label(hit, context)}" for number, hit in enumerate(hits[:_LISTED], 1)]
    more = f" … {len(hits)} in all" if len(hits) > _LISTED else ""
    return "; ".join(labels) + more or "no hits"


def _label(hit: Mapping[str, Json], context: Context) -> str:
    name = next((name for name, value in context.names.items() if value is not None and value == hit.get("id")), None)
    score = hit.get("score")
    shown = f" ({score:.4g})" if isinstance(score, float) else ""
    return f"{name or show(hit.get('text'), 60)}{shown}"


def _finding(hits: Hits, context: Context, says: str, *, holds: bool, expected: str) -> Finding:
    actual = describe(hits, context)
    return Finding(
        holds=holds, says=says if holds else f"{says}; the hits are: {actual}", expected=expected, actual=actual
    )


def _said(entry: Entry, hits: Hits, context: Context) -> str:
    if not isinstance(entry, str):
        return "a hit with " + " and ".join(f"a {field} that fits" for field in entry)
    if entry not in context.names and entry not in context.contents:
        return f"'{entry}' (of which nothing was saved)"
    return f"'{entry}'" + (_BY_TEXT if _by_text(entry, hits, context) else "")


def _by_text(name: str, hits: Hits, context: Context) -> bool:
    return name in context.contents and (_saved_id(name, context) is None or all(hit.get("id") is None for hit in hits))


def _saved_id(name: str, context: Context) -> Json:
    value = context.names.get(name)
    return value.get("id") if isinstance(value, Mapping) else value


def _is(hit: Mapping[str, Json], entry: Entry, hits: Hits, context: Context) -> bool:
    if not isinstance(entry, str):
        return together(dict(hit), [_fields(entry)], context).holds
    if _by_text(entry, hits, context):
        return hit.get("text") == context.contents[entry]
    saved = _saved_id(entry, context)
    return saved is not None and hit.get("id") == saved


def _fields(entry: Mapping[str, Group]) -> Matcher:
    mark = next(iter(entry.values()))[0].mark
    return Matcher(name="fields", argument=entry, mark=mark)


def _entries(reading: Reading, argument: Json, path: TreePath) -> tuple[Entry, ...]:
    if isinstance(argument, list):
        return tuple(_entry(reading, entry, (*path, index)) for index, entry in enumerate(argument))
    return (_entry(reading, argument, path),)


def _entry(reading: Reading, entry: Json, path: TreePath) -> Entry:
    return saved_name(reading, entry, path) if isinstance(entry, str) else groups(reading, entry, path)


def _needs_of_entries(entries: Sequence[Entry]) -> frozenset[Capability]:
    fields = {field for entry in entries if not isinstance(entry, str) for field in entry}
    return frozenset(_NEEDS[field] for field in _NEEDS.keys() & fields)


_NEEDS: Mapping[str, Capability] = {"score": "search.scores", "explain": "search.explain"}


@hit_check(
    "first",
    summary="the best hit is this one",
    grammar=_HIT,
    read=_entries,
    needs=_needs_of_entries,
    example="{first: ferry}",
)
def _first(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    (entry,) = entries
    said = _said(entry, hits, context)
    holds = bool(hits) and _is(hits[0], entry, hits, context)
    if holds:
        return _finding(hits, context, f"have {said} first", holds=True, expected=f"{said} first")
    why = ""
    if hits and not isinstance(entry, str):
        why = f": of the first, {together(dict(hits[0]), [_fields(entry)], context).says}"
    return _finding(hits, context, f"do not have {said} first{why}", holds=False, expected=f"{said} first")


def _present(hits: Hits, entries: Sequence[Entry], context: Context) -> Iterator[tuple[str, bool]]:
    for entry in entries:
        yield _said(entry, hits, context), any(_is(hit, entry, hits, context) for hit in hits)


@hit_check(
    "includes",
    summary="these are among the hits",
    grammar=_SOME_HITS,
    read=_entries,
    needs=_needs_of_entries,
    example="{includes: [ferry, {text: {contains: nine}}]}",
)
def _includes(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    found = list(_present(hits, entries, context))
    missing = [said for said, present in found if not present]
    says = f"lack {', '.join(missing)}" if missing else f"include {', '.join(said for said, _ in found)}"
    expected = ", ".join(said for said, _ in found)
    return _finding(hits, context, says, holds=not missing, expected=expected)


@hit_check(
    "excludes",
    summary="none of these is among the hits",
    grammar=_SOME_HITS,
    read=_entries,
    needs=_needs_of_entries,
    example="{excludes: ferry}",
)
def _excludes(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    found = list(_present(hits, entries, context))
    # A name that stands for nothing cannot be looked for: its absence would prove nothing.
    unsaved = [
        entry for entry in entries
        if isinstance(entry, str) and _saved_id(entry, context) is None and entry not in context.contents
    ]  # fmt: skip
    if unsaved:
        says = f"cannot be searched for '{unsaved[0]}', of which nothing was saved"
        return _finding(hits, context, says, holds=False, expected=f"without '{unsaved[0]}'")
    present = [said for said, is_there in found if is_there]
    every = ", ".join(said for said, _ in found)
    says = f"include {', '.join(present)}" if present else f"are without {every}"
    return _finding(hits, context, says, holds=not present, expected=f"without {every}")


@hit_check(
    "order",
    summary="these are among the hits, in this order; others may stand between",
    grammar={"type": "array", "minItems": 2, "items": _HIT},
    read=_entries,
    needs=_needs_of_entries,
    example="{order: [ferry, {key: tea}]}",
)
def _order(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    said = [_said(entry, hits, context) for entry in entries]
    expected, place = " before ".join(said), -1
    for index, entry in enumerate(entries):
        places = [number for number, hit in enumerate(hits) if _is(hit, entry, hits, context)]
        after = next((number for number in places if number > place), None)
        if after is None:
            says = f"have {said[index]} before {said[index - 1]}" if places else f"lack {said[index]}"
            return _finding(hits, context, says, holds=False, expected=expected)
        place = after
    return _finding(hits, context, f"have {expected}", holds=True, expected=expected)


@hit_check(
    "count", summary="how many hits: a number or matchers", grammar=NUMBER, read=group, example="{count: {le: 5}}"
)
def _count(hits: Hits, wanted: Group, context: Context) -> Finding:
    found = together(len(hits), wanted, context)
    says = f"count {len(hits)}" + ("" if found.holds else f", a number that {found.says}")
    return _finding(hits, context, says, holds=found.holds, expected=found.expected or "that count")


@hit_check("empty", summary="whether there is no hit", grammar={"type": "boolean"}, example="{empty: true}")
def _empty(hits: Hits, wanted: Json, context: Context) -> Finding:
    holds = (not hits) == wanted
    return _finding(hits, context, "are none" if not hits else f"are {len(hits)}", holds=holds,
                    expected="no hits" if wanted else "some hit")  # fmt: skip


def _scores_read(reading: Reading, argument: Json, path: TreePath) -> Group | Mapping[str, Group]:
    if isinstance(argument, dict) and not MATCHERS.keys() & argument.keys():
        return _by_name(reading, argument, path)
    return group(reading, argument, path)


def _by_name(reading: Reading, argument: Mapping[str, Json], path: TreePath) -> Mapping[str, Group]:
    for saved in argument:
        reading.known_name(saved, (*path, saved))
    return groups(reading, argument, path)


@hit_check(
    "scores",
    summary="the list of scores, best first, or {name: matchers on that hit's score}",
    grammar=VALUE,
    read=_scores_read,
    needs=lambda _: frozenset({"search.scores"}),
    example="{scores: {ferry: {ge: 0.8}}}",
)
def _scores(hits: Hits, argument: Any, context: Context) -> Finding:
    if not isinstance(argument, Mapping):
        found = together([hit.get("score") for hit in hits], argument, context)
        return Finding(holds=found.holds, says=f"have a list of scores that {found.says}", expected=found.expected,
                       actual=describe(hits, context), difference=found.difference)  # fmt: skip
    return _of_named(hits, argument, "score", context)


@hit_check(
    "explain",
    summary="{name: matchers on that hit's explanation}",
    grammar={"type": "object", "minProperties": 1, "additionalProperties": VALUE},
    read=_by_name,
    needs=lambda _: frozenset({"search.explain"}),
    example="{explain: {ferry: {similarity: {gt: 0.5}}}}",
)
def _explain(hits: Hits, argument: Mapping[str, Group], context: Context) -> Finding:
    return _of_named(hits, argument, "explain", context)


def _of_named(hits: Hits, wanted: Mapping[str, Group], field: str, context: Context) -> Finding:
    findings = []
    for name, matchers in wanted.items():
        hit = next((hit for hit in hits if _is(hit, name, hits, context)), None)
        if hit is None:
            findings.append(_finding(hits, context, f"lack '{name}'", holds=False, expected=f"'{name}'"))
            continue
        found = together(hit.get(field), matchers, context)
        word = "a score" if field == "score" else "an explanation"
        findings.append(Finding(holds=found.holds, says=f"have '{name}' with {word} that {found.says}",
                                expected=found.expected, actual=found.actual, difference=found.difference))  # fmt: skip
    return joined(findings)


@hit_check(
    "text",
    summary="the texts of all hits, joined by newlines",
    grammar=TEXTUAL,
    read=group,
    example="{text: {not: {contains: secret}}}",
)
def _text(hits: Hits, wanted: Group, context: Context) -> Finding:
    found = together("\n".join(str(hit.get("text", "")) for hit in hits), wanted, context)
    return Finding(
        holds=found.holds, says=f"have a text that {found.says}", expected=found.expected, actual=found.actual
    )


@hit_check(
    "not",
    summary="these checks do not all hold",
    grammar={"$ref": "#/$defs/hits"},
    read=read_hit_checks,
    needs=needs_of_hit_checks,
    example="{not: {first: ferry}}",
)
def _not(hits: Hits, checks: Sequence[Matcher], context: Context) -> Finding:
    return negated(joined([judge_hits(hits, one, context) for one in checks]))
