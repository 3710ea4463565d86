"""The page of a run or of a comparison: the totals of every column, all cases, and each case on a click.

A case is plain JSON there: shortened, without parts that nobody reads, with the lines of its story.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeAlias

from memstory.bundled import bundled_stories
from memstory.contract.codec import encode_lean
from memstory.contract.target import Tree
from memstory.language.text import MAX_CHARACTERS, pieces
from memstory.reporting.document import Note, Section, Table, shorten, visible
from memstory.reporting.page.plots import plots
from memstory.reporting.sections.columns import JUDGED, UNREADABLE, Column, columns_of, stand_ins, step_number
from memstory.reporting.sections.costs import latencies
from memstory.reporting.sections.outcomes import (
    OBLIGATIONS_NOTE,
    capability_scores,
    causes,
    changes_by_target,
    changes_since,
    groups_of,
    harm_of,
    not_judged,
    obligations_by_column,
    obligations_table,
    share,
    shown_outcomes,
    target_totals,
)
from memstory.results.outcomes import HARMS, OUTCOMES, WRONG, CaseResult, TrialResult
from memstory.results.recording import RetrievalRecord, StepRecord
from memstory.results.runs import NamedRun, Run, counted, natural
from memstory.tasks.perturbation import level_name

SIGNS: Final[Mapping[str, str]] = {
    "passed": "✓", "failed": "✗", "measured": "≈", "unsupported": "–", "error": "!", "invalid": "?",
}  # fmt: skip
"""A cell of the matrix; colour is never the only sign."""

_SHADES: Final = 10
_MOST_CAUSES: Final = 50
_TITLE_LIMIT: Final = 200
_MOST_CHANGES: Final = 200
TEXT_LIMIT: Final = 1_500
"""Characters of one text."""

LIST_LIMIT: Final = 30
"""Items of one list, such as the hits of a search."""

_MILLI: Final = 1000
_TIMES: Final = ("ms", "seconds", "model")
_EMPTY: Final[Sequence[Tree]] = (None, "", [], {})

LinesOf: TypeAlias = Callable[[CaseResult], "StoryLines | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLines:
    """The text of a document; `first` is the number of its first line in the file."""

    first: int
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInput:
    """What a page shows beside the runs themselves.

    `last` is the run before, of the same folder, of which `safe` takes out what this run must not show; `lines_of`
    finds the story of a case; `sections` are further tables.
    """

    title: str
    facts: Mapping[str, str]
    lines_of: LinesOf
    lead: str = ""
    last: Run | None = None
    safe: Callable[[CaseResult], CaseResult] = lambda case: case
    sections: Sequence[Section] = ()


def render_page(runs: Sequence[NamedRun], given: PageInput) -> str:
    """Return the page as HTML. Every text of a story or a target is escaped, and the page may run its own script only.

    `runs` have their steps where there are any.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (a start of pytest must not pay for it)

    columns = columns_of(runs)
    script, style = _own("page.js"), _own("page.css")
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters["counted"] = counted
    templates.filters["visible"] = visible
    templates.tests["table"] = lambda part: isinstance(part, Table)
    changes = [change for named in runs for change in changes_since(given.last, named.run)]
    words = {name: text for named in runs for name, text in changes_by_target(given.last, named.run).items()}
    totals = target_totals(columns)
    owed = obligations_table(obligations_by_column(columns), "Target")
    context = {
        "title": given.title, "lead": given.lead, "facts": given.facts, "style": style, "script": script,
        "script_hash": _hashed(script), "style_hash": _hashed(style), "signs": SIGNS, "outcomes": OUTCOMES,
        "totals": [(one, words.get(one.name)) for one in totals], "counted": shown_outcomes(totals),
        "has_last": given.last is not None, "changes": changes, "columns": [visible(one.title) for one in columns],
        "owed": Section("What a memory owes", [Note(OBLIGATIONS_NOTE), owed] if owed.rows else []),
        "capabilities": list(_capabilities(columns)), "groups": _groups(columns),
        "causes": causes(columns), "most_causes": _MOST_CAUSES, "most_changes": _MOST_CHANGES,
        "rows": list(_rows(columns)),
        "draw": templates.from_string(_own("plot.svg")).render, "plots": list(plots(columns, latencies(columns))),
        "sections": [one for one in given.sections if one.parts],
        "stand_ins": sorted({name for named in runs for name in stand_ins(named.run)}),
        "chunks": _chunks(columns, given),
    }  # fmt: skip
    return templates.from_string(_own("page.html")).render(context)


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _capabilities(columns: Sequence[Column]) -> Iterator[tuple[str, int, list[tuple[str, str, str]]]]:
    """Yield each group with its stories and for each column a share, a shade from 0 to 10, and what was not judged."""
    for score in capability_scores(columns):
        cells = []
        for column in columns:
            counts = score.columns[column.title]
            judged = sum(counts[outcome] for outcome in JUDGED)
            shade = str(counts["passed"] * _SHADES // judged) if judged else ""
            cells.append((share(counts) or "–", shade, ", ".join(not_judged(counts))))
        yield score.name, len(score.stories), cells


def _groups(columns: Sequence[Column]) -> list[str]:
    return sorted({name for column in columns for case in column.cases.values() for name in groups_of(case)})


def _rows(columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """Yield each story: its name, title, groups, harm, and its outcome in each column."""
    groups = {name: number for number, name in enumerate(_groups(columns))}
    for story in _stories(columns):
        cases = [one.cases.get(story) for one in columns]
        case = next(one for one in cases if one is not None)
        yield {
            "name": visible(story),
            "slug": case.slug or "",
            "title": visible(shorten(case.title or UNREADABLE, _TITLE_LIMIT)),
            "groups": " ".join(str(groups[name]) for name in groups_of(case)),
            "harm": min((one.harm for one in cases if one and one.harm), key=HARMS.index, default=harm_of(case)),
            "tags": " ".join(case.tags),
            "outcomes": [one.outcome if one else "" for one in cases],
        }


def _stories(columns: Sequence[Column]) -> list[str]:
    """Return the stories: first those that went wrong somewhere, then those of most columns."""
    found: dict[str, list[CaseResult]] = {}
    for column in columns:
        for story, case in column.cases.items():
            found.setdefault(story, []).append(case)
    return sorted(
        found,
        key=lambda story: (
            all(case.outcome not in WRONG for case in found[story]),
            -len(found[story]),
            natural(story),
        ),
    )


def _chunks(columns: Sequence[Column], given: PageInput) -> Iterator[str]:
    """Yield all that is known of one story after the other, packed."""
    before = {case.id: case for case in given.last.cases} if given.last else {}
    for story in _stories(columns):
        cases = {one.title: one.cases[story] for one in columns if story in one.cases}
        first = next(iter(cases.values()))
        lines = given.lines_of(first)
        yield packed(
            {
                "where": visible(first.where),
                "tags": list(first.tags),
                "covers": list(first.covers),
                "first": lines.first if lines else 0,
                "lines": [visible(line) for line in lines.lines] if lines else [],
                "cases": {visible(name): _with_last(case, before.get(case.id), given) for name, case in cases.items()},
            }
        )


def _with_last(case: CaseResult, last: CaseResult | None, given: PageInput) -> Mapping[str, Any]:
    """Return the details of a case, with those of the last run where they differ; `same` says that they do not.

    Nothing is shown of a last run that kept texts which are taken out of this one.
    """
    shown = dict(details(case))
    if last is not None and bool(case.redacted.get("texts")) == bool(last.redacted.get("texts")):
        old, now = details(last), without_times(shown)
        if without_times(old) != now:
            # What equals a safe case is safe: only the others are searched.
            old = details(given.safe(last))
        shown |= {"same": True} if without_times(old) == now else {"last": dict(old)}
    return shown


def details(case: CaseResult) -> Mapping[str, Tree]:
    """Return what is shown of the trial that stands for `case`; empty fields are left out."""
    trial = case.deciding
    shown: dict[str, Any] = {
        "id": case.id,
        "outcome": case.outcome,
        "reason": case.reason,
        "seconds": round(case.seconds, 3),
        "options": dict(case.options),
        "warnings": list(case.warnings),
        "redacted": {name: count for name, count in case.redacted.items() if count},
    }
    if trial is not None:
        shown |= _of_trial(trial)
        shown["trial"] = f"trial {case.shown + 1} of {len(case.trials)}" if len(case.trials) > 1 else None
        shown["rate"] = str(case.rate) if case.rate else None
    shown["scores"] = [encode_lean(score) for score in case.scores if score.category is None]
    return {name: _trimmed(value) for name, value in shown.items() if value not in _EMPTY}


def without_times(shown: Mapping[str, Tree]) -> Tree:
    """Return details that are equal for two runs that did the same."""
    return _without_times(dict(shown))


def packed(tree: Tree) -> str:
    """Return JSON, deflated and in base64, as `DecompressionStream('deflate-raw')` of a browser reads it."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text) + packer.flush()).decode()


def _of_trial(trial: TrialResult) -> Mapping[str, Any]:
    recording = trial.recording
    shown: dict[str, Any] = {"about": dict(recording.about), "steps": list(_steps(trial))}
    shown["checks"] = [
        {"step": step_number(one.step), **{name: inner for name, inner in encode_lean(one).items() if name != "step"}}
        # What failed comes first: of many, only the first are shown.
        for one in sorted(trial.verdicts, key=lambda one: one.passed)
    ]
    if failure := recording.failure:
        shown["ended"] = {**encode_lean(failure), "step": step_number(failure.step)}
    shown["asked"] = [_asked(record) for record in recording.retrieval]
    return shown


def _steps(trial: TrialResult) -> Iterator[dict[str, Any]]:
    if trial.recording.steps:
        yield from map(_step, trial.recording.steps)
        return
    # Without recordings, results.json still has the times, and what an agent did where a trial did not pass.
    turns = {tuple(one.path): one for one in trial.agent}
    for time in trial.times:
        agent = turns.get(tuple(time.path))
        said = {"text": agent.said} if agent and agent.said is not None else {}
        result = encode_lean(agent.turn) if agent else None
        yield {"n": step_number(time.path), "op": time.op, "args": said, "result": result, "ms": _ms(time.seconds)}


def _step(step: StepRecord) -> dict[str, Any]:
    return {
        "n": step_number(step.path), "op": step.op, "user": step.user, "session": step.session, "at": step.at,
        "ms": _ms(step.seconds), "args": step.args, "error": step.error, "result": step.result,
        "model": str(step.model) if step.model else None,
    }  # fmt: skip


def _ms(seconds: float) -> float:
    return round(seconds * _MILLI, 1)


def _asked(record: RetrievalRecord) -> dict[str, Any]:
    """Return a retrieval task: its counts, and the questions that did not find all that they should."""
    judged = [asked for asked in record.questions if asked.judged]
    missed = [asked for asked in judged if not asked.is_answered]
    return {
        "name": record.name, "level": level_name(record.level), "documents": record.documents, "k": record.k,
        "questions": len(judged), "missed": len(missed),
        "examples": [
            {"id": asked.id, "category": asked.category, "wanted": asked.relevant, "got": asked.retrieved}
            for asked in missed[:LIST_LIMIT]
        ],
    }  # fmt: skip


def _trimmed(value: Any) -> Tree:
    if isinstance(value, str):
        return visible(shorten(value, TEXT_LIMIT))
    if isinstance(value, Mapping):
        return {visible(str(name)): made for name, inner in value.items() if (made := _trimmed(inner)) not in _EMPTY}
    if isinstance(value, Sequence):
        kept: list[Tree] = [_trimmed(inner) for inner in value[:LIST_LIMIT]]
        return kept if len(kept) == len(value) else [*kept, f"… and {len(value) - len(kept)} more"]
    return value


def _without_times(value: Tree) -> Tree:
    if isinstance(value, dict):
        return {name: _without_times(inner) for name, inner in value.items() if name not in _TIMES}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value


def lines_in(roots: Sequence[Path], clean: Callable[[str], str]) -> LinesOf:
    """Return what finds the lines of a case's story below `roots`; `clean` takes out what must not be shown.

    The story is known by its digest, so a file that changed since the run gives nothing. Nothing either where the texts
    of the case were redacted.
    """
    read: dict[str, Sequence[tuple[int, str]]] = {}

    def find(case: CaseResult) -> StoryLines | None:
        name = case.where.rsplit(":", 2)[0]
        if case.redacted.get("texts") or not case.digest:
            return None
        if name not in read:
            read[name] = _documents(name, roots)
        of_row = f"\n# row {case.row}" if case.row else ""
        for first, text in read[name]:
            if _digest(text.strip() + of_row) == case.digest:
                above = len(text) - len(text.lstrip("\n"))
                return StoryLines(first=first + above, lines=clean(text.strip("\n")).split("\n"))
        return None

    return find


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _documents(name: str, roots: Sequence[Path]) -> Sequence[tuple[int, str]]:
    """Return the documents of a file, each with the number of its first line."""
    for root in (*roots, bundled_stories().parent):
        try:
            text = (root / name).read_bytes().decode()
        except (OSError, ValueError):
            continue
        return tuple(pieces(text.removeprefix("\ufeff"))) if len(text) <= MAX_CHARACTERS else ()
    return ()
