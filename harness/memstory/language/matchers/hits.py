"""Checks of what a retrieval brought back: which memories, in which order, with which scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from memstory.language.matchers.finding import Context, Finding, show
from memstory.language.matchers.matching import joined, negated, together
from memstory.language.story import Matcher
from memstory.target import Json

Hits: TypeAlias = Sequence[Mapping[str, Json]]
Entry: TypeAlias = str | Mapping[str, Sequence[Matcher]]

_LISTED = 10
_BY_TEXT = " (matched by text, since the backend gave no ids)"


def judge_hits(hits: Hits, matcher: Matcher, context: Context) -> Finding:
    """Judge one check on a list of hits, best first."""
    return _CHECKS[matcher.name](hits, matcher.argument, context)


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


def _fields(entry: Mapping[str, Sequence[Matcher]]) -> Matcher:
    mark = next(iter(entry.values()))[0].mark
    return Matcher(name="fields", argument=entry, mark=mark)


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


def _includes(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    found = list(_present(hits, entries, context))
    missing = [said for said, present in found if not present]
    says = f"lack {', '.join(missing)}" if missing else f"include {', '.join(said for said, _ in found)}"
    expected = ", ".join(said for said, _ in found)
    return _finding(hits, context, says, holds=not missing, expected=expected)


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


def _count(hits: Hits, group: Sequence[Matcher], context: Context) -> Finding:
    found = together(len(hits), group, context)
    says = f"count {len(hits)}" + ("" if found.holds else f", a number that {found.says}")
    return _finding(hits, context, says, holds=found.holds, expected=found.expected or "that count")


def _empty(hits: Hits, wanted: bool, context: Context) -> Finding:  # noqa: FBT001  (a check takes its argument so)
    holds = (not hits) == wanted
    return _finding(hits, context, "are none" if not hits else f"are {len(hits)}", holds=holds,
                    expected="no hits" if wanted else "some hit")  # fmt: skip


def _scores(hits: Hits, argument: Any, context: Context) -> Finding:
    if not isinstance(argument, Mapping):
        found = together([hit.get("score") for hit in hits], argument, context)
        return Finding(holds=found.holds, says=f"have a list of scores that {found.says}", expected=found.expected,
                       actual=describe(hits, context), difference=found.difference)  # fmt: skip
    return _of_named(hits, argument, "score", context)


def _explain(hits: Hits, argument: Mapping[str, Sequence[Matcher]], context: Context) -> Finding:
    return _of_named(hits, argument, "explain", context)


def _of_named(hits: Hits, groups: Mapping[str, Sequence[Matcher]], field: str, context: Context) -> Finding:
    findings = []
    for name, group in groups.items():
        hit = next((hit for hit in hits if _is(hit, name, hits, context)), None)
        if hit is None:
            findings.append(_finding(hits, context, f"lack '{name}'", holds=False, expected=f"'{name}'"))
            continue
        found = together(hit.get(field), group, context)
        word = "a score" if field == "score" else "an explanation"
        findings.append(Finding(holds=found.holds, says=f"have '{name}' with {word} that {found.says}",
                                expected=found.expected, actual=found.actual, difference=found.difference))  # fmt: skip
    return joined(findings)


def _text(hits: Hits, group: Sequence[Matcher], context: Context) -> Finding:
    found = together("\n".join(str(hit.get("text", "")) for hit in hits), group, context)
    return Finding(
        holds=found.holds, says=f"have a text that {found.says}", expected=found.expected, actual=found.actual
    )


def _not(hits: Hits, checks: Sequence[Matcher], context: Context) -> Finding:
    return negated(joined([judge_hits(hits, one, context) for one in checks]))


_CHECKS: Mapping[str, Callable[[Hits, Any, Context], Finding]] = {
    "first": _first,
    "includes": _includes,
    "excludes": _excludes,
    "order": _order,
    "count": _count,
    "empty": _empty,
    "scores": _scores,
    "explain": _explain,
    "text": _text,
    "not": _not,
}
