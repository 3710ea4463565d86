"""The checks of the hits of a retrieval, best first: which memories, in which order, with which scores."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Final, Literal, TypeAlias, get_args

from memstory.contract.errors import MissingValue
from memstory.contract.target import Capability, Tree
from memstory.language.matchers.check import (
    MATCHERS,
    NUMBER,
    TEXTUAL,
    VALUE,
    Check,
    CheckDecorator,
    Context,
    Finding,
    Group,
    assign_places,
    join_findings,
    judge_group,
    negate,
    read_checks,
    read_group,
    read_groups,
    read_saved_name,
    show,
)
from memstory.language.reading import Reading, TreePath
from memstory.language.registry import Registry
from memstory.language.story import Matcher
from memstory.results.outcomes import NO_HITS

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
"""The grammar of the matchers of each field of a hit."""

HIT = {"type": ["string", "object"], "$ref": "#/$defs/hit_fields"}
SOME_HITS = {**HIT, "type": ["string", "object", "array"], "minItems": 1, "items": HIT}

_NEEDS: Mapping[str, Capability] = {"score": "search.scores", "explain": "search.explain"}
_MOST_DESCRIBED = 10
_LONG = 120
_ROUNDING = 1e-9
_SHORT = 40
_BY_TEXT = " (matched by text, since the backend gave no ids)"


def describe_hits(hits: Hits, context: Context) -> str:
    """Return the hits for a sentence, by their saved names or texts."""
    labels = [f"{number}. {_label(hit, context)}" for number, hit in enumerate(hits[:_MOST_DESCRIBED], 1)]
    more = f" … {len(hits)} in all" if len(hits) > _MOST_DESCRIBED else ""
    return "; ".join(labels) + more or "no hits"


def _label(hit: Mapping[str, Tree], context: Context) -> str:
    name = next((name for name, value in context.names.items() if value is not None and value == hit.get("id")), None)
    score = hit.get("score")
    shown = f" ({score:.4g})" if isinstance(score, float) else ""
    return f"{name or show(hit.get('text'), 60)}{shown}"


def entry_text(entry: Entry, hits: Hits, context: Context) -> str:
    """Return an entry for a sentence; raise MissingValue if it is a name without a value."""
    if not isinstance(entry, str):
        return "a hit whose " + " and ".join(f"{field} {_condition(group)}" for field, group in entry.items())
    if saved_id(entry, context) is None and entry not in context.contents:
        raise MissingValue(f"nothing was saved as '{entry}'")
    return f"'{entry}'" + (_BY_TEXT if hits and _is_by_text(entry, hits, context) else "")


def _condition(group: Group) -> str:
    return " and ".join(f"{one.name} {_argument(one.argument)}" for one in group)


def _argument(argument: Any) -> str:
    if isinstance(argument, tuple) and all(isinstance(one, Matcher) for one in argument):
        return f"({_condition(argument)})"
    if isinstance(argument, Mapping):
        return f"({', '.join(f'{key} {_argument(inner)}' for key, inner in argument.items())})"
    return show(argument, _SHORT)


def _is_by_text(name: str, hits: Hits, context: Context) -> bool:
    return name in context.contents and (saved_id(name, context) is None or all(hit.get("id") is None for hit in hits))


def saved_id(name: str, context: Context) -> Tree:
    """Return the id that was saved as `name`, alone or in a hit; None without one."""
    value = context.names.get(name)
    return value.get("id") if isinstance(value, Mapping) else value


def is_entry(hit: Mapping[str, Tree], entry: Entry, hits: Hits, context: Context) -> bool:
    """Return whether `hit` fits `entry`: a saved name, or matchers by field."""
    if not isinstance(entry, str):
        return judge_group(dict(hit), [entry_fields(entry)], context).holds
    if _is_by_text(entry, hits, context):
        return hit.get("text") == context.contents[entry]
    saved = saved_id(entry, context)
    return saved is not None and hit.get("id") == saved


def entry_fields(entry: Mapping[str, Group]) -> Matcher:
    """Return the matcher `fields` of an entry of matchers by field."""
    mark = next(iter(entry.values()))[0].mark
    return Matcher(name="fields", argument=entry, mark=mark)


def read_entries(reading: Reading, argument: Tree, path: TreePath) -> tuple[Entry, ...]:
    """Return the entries of a list, or one that is written alone."""
    if isinstance(argument, list):
        return tuple(_entry(reading, entry, (*path, index)) for index, entry in enumerate(argument))
    return (_entry(reading, argument, path),)


def _entry(reading: Reading, entry: Tree, path: TreePath) -> Entry:
    return read_saved_name(reading, entry, path) if isinstance(entry, str) else read_groups(reading, entry, path)


def needs_of_entries(entries: Sequence[Entry]) -> frozenset[Capability]:
    """Return the capabilities that a search needs for these entries."""
    fields = {field for entry in entries if not isinstance(entry, str) for field in entry}
    return frozenset(_NEEDS[field] for field in _NEEDS.keys() & fields)


HIT_CHECKS: Registry[Check] = Registry("check of hits")
hit_check = CheckDecorator(HIT_CHECKS)


def read_hit_checks(reading: Reading, checks: Mapping[str, Tree], path: TreePath) -> Group:
    """Return the checks of `hits:`; their arguments are those of `memstory.language.story.Matcher`."""
    return read_checks(HIT_CHECKS, reading, checks, path)


def judge_hits(hits: Hits, one: Matcher, context: Context) -> Finding:
    """Return the finding of one check on hits, best first."""
    return HIT_CHECKS[one.name].judge(hits, one.argument, context)


def needs_of_hit_checks(checks: Sequence[Matcher]) -> frozenset[Capability]:
    """Return the capabilities that a search needs for these checks."""
    return frozenset().union(*(HIT_CHECKS[one.name].needs(one.argument) for one in checks))


def _finding(hits: Hits, context: Context, says: str, *, holds: bool, expected: str) -> Finding:
    actual = describe_hits(hits, context)
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
    said = entry_text(entry, hits, context)
    holds = bool(hits) and is_entry(hits[0], entry, hits, context)
    if holds:
        return _finding(hits, context, f"have {said} first", holds=True, expected=f"{said} first")
    why = ""
    if hits and not isinstance(entry, str):
        why = f": of the first, {judge_group(dict(hits[0]), [entry_fields(entry)], context).says}"
    return _finding(hits, context, f"do not have {said} first{why}", holds=False, expected=f"{said} first")


def _presence(hits: Hits, entries: Sequence[Entry], context: Context) -> Iterator[tuple[str, bool]]:
    for entry in entries:
        yield entry_text(entry, hits, context), any(is_entry(hit, entry, hits, context) for hit in hits)


@hit_check(
    "includes",
    summary="these are among the hits",
    grammar=SOME_HITS,
    read=read_entries,
    needs=needs_of_entries,
    example="{includes: [ferry, {text: {contains: nine}}]}",
)
def _includes(hits: Hits, entries: Sequence[Entry], context: Context) -> Finding:
    found = list(_presence(hits, entries, context))
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
    said = [entry_text(entry, hits, context) for entry in entries]
    fits = [[place for place, hit in enumerate(hits) if is_entry(hit, one, hits, context)] for one in entries]
    taken = assign_places(fits)
    faults = [
        *(f"lack {name}" for place, name in enumerate(said) if place not in taken.values()),
        *(
            f"have one too many, {describe_hits([hit], context)}"
            for place, hit in enumerate(hits)
            if place not in taken
        ),
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
    found = list(_presence(hits, entries, context))
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
    said = [entry_text(entry, hits, context) for entry in entries]
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
    "count", summary="how many hits: a number or matchers", grammar=NUMBER, read=read_group, example="{count: {le: 5}}"
)
def _count(hits: Hits, wanted: Group, context: Context) -> Finding:
    found = judge_group(len(hits), wanted, context)
    expected = found.expected or "that count"
    says = f"count {len(hits)}" + ("" if found.holds else f", expected {expected}")
    return _finding(hits, context, says, holds=found.holds, expected=expected)


@hit_check("empty", summary="whether there is no hit", grammar={"type": "boolean"}, example="{empty: true}")
def _empty(hits: Hits, wanted: Tree, context: Context) -> Finding:
    holds = (not hits) == wanted
    expected = "none" if wanted else "some"
    says = f"are {len(hits) or 'none'}" + ("" if holds else f", expected {expected}")
    return _finding(hits, context, says, holds=holds, expected="no hits" if wanted else "some hit")


def _read_scores(reading: Reading, argument: Tree, path: TreePath) -> Group | Mapping[str, Group]:
    if isinstance(argument, dict) and not MATCHERS.keys() & argument.keys():
        return _read_by_name(reading, argument, path)
    return read_group(reading, argument, path)


def _read_by_name(reading: Reading, argument: Mapping[str, Tree], path: TreePath) -> Mapping[str, Group]:
    for saved in argument:
        reading.require_saved(saved, (*path, saved))
    return read_groups(reading, argument, path)


@hit_check(
    "scores",
    summary="the list of scores, best first, or {name: matchers on that hit's score}",
    grammar={**VALUE, "minProperties": 1},
    read=_read_scores,
    needs=lambda _: frozenset({"search.scores"}),
    example="{scores: {ferry: {ge: 0.8}}}",
)
def _scores(hits: Hits, argument: Any, context: Context) -> Finding:
    if not isinstance(argument, Mapping):
        found = judge_group([hit.get("score") for hit in hits], argument, context)
        return Finding(holds=found.holds, says=f"have a list of scores that {found.says}", expected=found.expected,
                       actual=describe_hits(hits, context), difference=found.difference)  # fmt: skip
    return _judge_named(hits, argument, "score", context)


@hit_check(
    "falling",
    summary="whether scores never rise from one hit to the next, and all are numbers",
    grammar={"type": "boolean"},
    needs=lambda _: frozenset({"search.scores"}),
    example="{falling: true}",
)
def _falling(hits: Hits, wanted: Tree, context: Context) -> Finding:
    scores: list[float] = [hit["score"] for hit in hits if hit.get("score") is not None]
    falls = all(map(isfinite, scores)) and all(after <= before + _ROUNDING for before, after in pairwise(scores))
    says = f"have scores that {'fall' if falls else 'do not fall'}: {show(scores, _LONG)}"
    expected = f"scores that {'fall' if wanted else 'do not fall'}"
    return _finding(hits, context, says, holds=falls == wanted, expected=expected)


@hit_check(
    "explain",
    summary="{name: matchers on that hit's explanation}",
    grammar={"type": "object", "minProperties": 1, "additionalProperties": VALUE},
    read=_read_by_name,
    needs=lambda _: frozenset({"search.explain"}),
    example="{explain: {ferry: {similarity: {gt: 0.5}}}}",
)
def _explain(hits: Hits, argument: Mapping[str, Group], context: Context) -> Finding:
    return _judge_named(hits, argument, "explain", context)


def _judge_named(hits: Hits, wanted: Mapping[str, Group], field: str, context: Context) -> Finding:
    findings = []
    for name, matchers in wanted.items():
        hit = next((hit for hit in hits if is_entry(hit, name, hits, context)), None)
        if hit is None:
            said = entry_text(name, hits, context)
            findings.append(_finding(hits, context, f"lack {said}", holds=False, expected=said))
            continue
        found = judge_group(hit.get(field), matchers, context)
        word = "a score" if field == "score" else "an explanation"
        findings.append(Finding(holds=found.holds, says=f"have '{name}' with {word} that {found.says}",
                                expected=found.expected, actual=found.actual, difference=found.difference))  # fmt: skip
    return join_findings(findings)


@hit_check(
    "text",
    summary="the texts of all hits, joined by newlines",
    grammar=TEXTUAL,
    read=read_group,
    example="{text: {not: {contains: secret}}}",
)
def _text(hits: Hits, wanted: Group, context: Context) -> Finding:
    found = judge_group("\n".join(str(hit.get("text", "")) for hit in hits), wanted, context)
    return Finding(
        holds=found.holds, says=f"have a text that {found.says}", expected=found.expected, actual=found.actual
    )


CorrectionOutcome = Literal["new only", "both", "stale first", "old only", "nothing"]
CORRECTION_OUTCOMES: Final[tuple[CorrectionOutcome, ...]] = get_args(CorrectionOutcome)
"""What hits have of a corrected value, the best first; `both` has the new value first."""

_VALUE: Final = {"type": "string", "minLength": 1}


def correction_outcome(hits: Hits, now: str, was: str) -> CorrectionOutcome:
    """Return what the hits have of a value that was corrected from `was` to `now`; a hit with both counts as new.

    >>> correction_outcome([{"text": "I live in Porto."}, {"text": "I moved to Lisbon."}], now="Lisbon", was="Porto")
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
def _judge_correction(hits: Hits, wanted: Mapping[str, Tree], context: Context) -> Finding:
    found = correction_outcome(hits, wanted["now"], wanted["was"])
    holds = found == "new only" or (found == "both" and wanted.get("both") == "allowed")
    now, was = show(wanted["now"]), f"the former {show(wanted['was'])}"
    texts: Mapping[CorrectionOutcome, str] = {
        "new only": f"{now} without {was}",
        "both": f"{now} before {was}",
        "stale first": f"{was} before {now}",
        "old only": f"{was} without {now}",
        "nothing": f"neither {now} nor {was}",
    }
    actual = describe_hits(hits, context)
    says = f"have {texts[found]}"
    return Finding(holds=holds, says=says if holds else f"{says}; the hits are: {actual}",
                   expected=texts["new only"], actual=actual, kind=found)  # fmt: skip


@hit_check(
    "not",
    summary="these checks do not all hold",
    grammar={"$ref": "#/$defs/hits"},
    read=read_hit_checks,
    needs=needs_of_hit_checks,
    example="{not: {first: ferry}}",
)
def _not(hits: Hits, checks: Sequence[Matcher], context: Context) -> Finding:
    return negate(join_findings([judge_hits(hits, one, context) for one in checks]))
