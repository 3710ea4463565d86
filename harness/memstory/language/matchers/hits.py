"""Checks of what a retrieval brought back: which memories, in which order, with which scores."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from memstory.contract.target import Capability, Tree
from memstory.language.matchers.check import (
    MATCHERS,
    Check,
    Declares,
    Group,
    assigned,
    joined,
    negated,
    read_checks,
    together,
)
from memstory.language.matchers.entries import (
    HIT,
    SOME_HITS,
    Entry,
    Hits,
    describe,
    fields_of,
    is_entry,
    needs_of_entries,
    read_entries,
    said_of,
)
from memstory.language.matchers.finding import Context, Finding, show
from memstory.language.matchers.groups import NUMBER, TEXTUAL, VALUE, group, groups
from memstory.language.reading import Reading, TreePath
from memstory.language.registry import Registry
from memstory.language.story import Matcher
from memstory.results.outcomes import NO_HITS

HIT_CHECKS: Registry[Check] = Registry("check of hits")
hit_check = Declares(HIT_CHECKS)


def read_hit_checks(reading: Reading, checks: Mapping[str, Tree], path: TreePath) -> Group:
    """Return the checks of a list of hits; their arguments are as `memstory.language.story.Matcher` describes."""
    return read_checks(HIT_CHECKS, reading, checks, path)


def judge_hits(hits: Hits, one: Matcher, context: Context) -> Finding:
    """Judge one check on a list of hits, best first."""
    return HIT_CHECKS[one.name].judge(hits, one.argument, context)


def needs_of_hit_checks(checks: Sequence[Matcher]) -> frozenset[Capability]:
    """Return what a search must be able to do for these checks."""
    return frozenset().union(*(HIT_CHECKS[one.name].needs(one.argument) for one in checks))


def _finding(hits: Hits, context: Context, says: str, *, holds: bool, expected: str) -> Finding:
    actual = describe(hits, context)
    says = says if holds else f"{says}; the hits are: {actual}"
    kind = NO_HITS if not holds and not hits else None
    return Finding(holds=holds, says=says, expected=expected, actual=actual, kind=kind)


@hit_check(
    "first",
    summary="the best hit is this one",
    grammar=HIT,
    read=read_entries,
    needs=needs_of_entries,
    example="{first: ferry}",
)
def _first(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    (entry,) = entries
    said = said_of(entry, hits, context)
    holds = bool(hits) and is_entry(hits[0], entry, hits, context)
    if holds:
        return _finding(hits, context, f"have {said} first", holds=True, expected=f"{said} first")
    why = ""
    if hits and not isinstance(entry, str):
        why = f": of the first, {together(dict(hits[0]), [fields_of(entry)], context).says}"
    return _finding(hits, context, f"do not have {said} first{why}", holds=False, expected=f"{said} first")


def _present(hits: Hits, entries: Sequence[Entry], context: Context) -> Iterator[tuple[str, bool]]:
    for entry in entries:
        yield said_of(entry, hits, context), any(is_entry(hit, entry, hits, context) for hit in hits)


@hit_check(
    "includes",
    summary="these are among the hits",
    grammar=SOME_HITS,
    read=read_entries,
    needs=needs_of_entries,
    example="{includes: [ferry, {text: {contains: nine}}]}",
)
def _includes(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    found = list(_present(hits, entries, context))
    missing = [said for said, present in found if not present]
    says = f"lack {', '.join(missing)}" if missing else f"include {', '.join(said for said, _ in found)}"
    expected = ", ".join(said for said, _ in found)
    return _finding(hits, context, says, holds=not missing, expected=expected)


@hit_check(
    "exactly",
    summary="exactly these are the hits, in any order",
    grammar={**HIT, "type": ["string", "object", "array"], "items": HIT},
    read=read_entries,
    needs=needs_of_entries,
    example="{exactly: [ferry, tea]}",
)
def _exactly(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    said = [said_of(entry, hits, context) for entry in entries]
    fits = [[place for place, hit in enumerate(hits) if is_entry(hit, one, hits, context)] for one in entries]
    taken = assigned(fits)
    faults = [
        *(f"lack {name}" for place, name in enumerate(said) if place not in taken.values()),
        *(f"have one too many, {describe([hit], context)}" for place, hit in enumerate(hits) if place not in taken),
    ]
    expected = f"exactly {', '.join(said) or 'nothing'}"
    return _finding(hits, context, " and ".join(faults) or f"are {expected}", holds=not faults, expected=expected)


@hit_check(
    "excludes",
    summary="none of these is among the hits",
    grammar=SOME_HITS,
    read=read_entries,
    needs=needs_of_entries,
    example="{excludes: ferry}",
)
def _excludes(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    found = list(_present(hits, entries, context))
    present = [said for said, is_there in found if is_there]
    every = ", ".join(said for said, _ in found)
    says = f"include {', '.join(present)}" if present else f"are without {every}"
    return _finding(hits, context, says, holds=not present, expected=f"without {every}")


@hit_check(
    "order",
    summary="these are among the hits, in this order; others can be in between",
    grammar={"type": "array", "minItems": 2, "items": HIT},
    read=read_entries,
    needs=needs_of_entries,
    example="{order: [ferry, {key: tea}]}",
)
def _order(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    said = [said_of(entry, hits, context) for entry in entries]
    expected, place = " before ".join(said), -1
    for index, entry in enumerate(entries):
        places = [number for number, hit in enumerate(hits) if is_entry(hit, entry, hits, context)]
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
    expected = found.expected or "that count"
    says = f"count {len(hits)}" + ("" if found.holds else f", expected {expected}")
    return _finding(hits, context, says, holds=found.holds, expected=expected)


@hit_check("empty", summary="whether there is no hit", grammar={"type": "boolean"}, example="{empty: true}")
def _empty(hits: Hits, wanted: Tree, context: Context) -> Finding:
    holds = (not hits) == wanted
    expected = "none" if wanted else "some"
    says = f"are {len(hits) or 'none'}" + ("" if holds else f", expected {expected}")
    return _finding(hits, context, says, holds=holds, expected="no hits" if wanted else "some hit")


def _scores_read(reading: Reading, argument: Tree, path: TreePath) -> Group | Mapping[str, Group]:
    if isinstance(argument, dict) and not MATCHERS.keys() & argument.keys():
        return _by_name(reading, argument, path)
    return group(reading, argument, path)


def _by_name(reading: Reading, argument: Mapping[str, Tree], path: TreePath) -> Mapping[str, Group]:
    for saved in argument:
        reading.known_name(saved, (*path, saved))
    return groups(reading, argument, path)


@hit_check(
    "scores",
    summary="the list of scores, best first, or {name: matchers on that hit's score}",
    grammar={**VALUE, "minProperties": 1},
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
        hit = next((hit for hit in hits if is_entry(hit, name, hits, context)), None)
        if hit is None:
            said = said_of(name, hits, context)
            findings.append(_finding(hits, context, f"lack {said}", holds=False, expected=said))
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


Kept = Literal["new only", "both", "stale first", "old only", "nothing"]
KEPT: Final[tuple[Kept, ...]] = get_args(Kept)
"""How a correction was kept, the best first; `both` has the new value first."""

_VALUE: Final = {"type": "string", "minLength": 1}


def kept(hits: Hits, now: str, was: str) -> Kept:
    """Return how a correction from `was` to `now` was kept; a hit with both values tells of the change.

    >>> kept([{"text": "I live in Porto."}, {"text": "I moved to Lisbon."}], now="Lisbon", was="Porto")
    'stale first'
    """
    texts = [_plain(str(hit.get("text"))) for hit in hits]
    new = next((place for place, text in enumerate(texts) if _plain(now) in text), None)
    old = next((place for place, text in enumerate(texts) if _plain(was) in text and _plain(now) not in text), None)
    if new is None:
        return "nothing" if old is None else "old only"
    if old is None:
        return "new only"
    return "both" if new < old else "stale first"


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@hit_check(
    "corrected",
    summary="the current value is returned and the former one is not; with `both: allowed` it may rank lower",
    grammar={
        "title": "key of a correction",
        "type": "object",
        "required": ["now", "was"],
        "additionalProperties": False,
        "properties": {
            "now": {"description": "A text that the current memory contains.", **_VALUE},
            "was": {"description": "A text that the outdated memory contains.", **_VALUE},
            "both": {"description": "The outdated memory may follow the current one.", "enum": ["allowed"]},
        },
    },
    example="{corrected: {now: nine, was: eight}}",
)
def _corrected(hits: Hits, wanted: Mapping[str, Tree], context: Context) -> Finding:
    found = kept(hits, wanted["now"], wanted["was"])
    holds = found == "new only" or (found == "both" and wanted.get("both") == "allowed")
    said = f"{show(wanted['now'])} for {show(wanted['was'])}"
    actual = describe(hits, context)
    says = f"keep the correction {said} as: {found}"
    return Finding(holds=holds, says=says if holds else f"{says}; the hits are: {actual}",
                   expected=f"{said}: new only", actual=actual, kind=found)  # fmt: skip


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
