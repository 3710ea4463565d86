"""The page of a run or of a comparison: its document as HTML, all cases in a matrix, and each case on a click."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from memstory.bundled import bundled_stories, named_path
from memstory.contract.target import Tree
from memstory.language.text import MAX_CHARACTERS, pieces
from memstory.reporting.document import (
    BLOCK_LIMIT,
    Badge,
    Block,
    CaseLink,
    Document,
    FileLink,
    Fold,
    Items,
    ListItem,
    Markup,
    Note,
    Part,
    PlaceLink,
    Section,
    ShareCell,
    Sign,
    Table,
    Words,
    shorten,
    visible,
)
from memstory.reporting.page.plots import MOST_SERIES, plots
from memstory.reporting.sections.case_steps import case_steps, failed_lines
from memstory.reporting.sections.columns import UNREADABLE, Column, columns_of, stand_in_words
from memstory.reporting.sections.costs import latencies
from memstory.reporting.sections.memories import memories_section
from memstory.reporting.sections.outcomes import (
    capability_scores,
    capability_section,
    causes,
    causes_section,
    changes_by_target,
    changes_section,
    changes_since,
    essential_section,
    groups_of,
    harm_of,
    obligations_by_column,
    obligations_section,
    totals_parts,
)
from memstory.results.outcomes import HARMS, OUTCOMES, WRONG, CaseResult
from memstory.results.runs import NamedRun, Run, by_key, natural, quantity

if TYPE_CHECKING:
    from jinja2 import Template

SIGNS: Final[Mapping[str, str]] = {
    "passed": "✓", "failed": "✗", "measured": "≈", "unsupported": "–", "exhausted": "$", "error": "!", "invalid": "?",
}  # fmt: skip
"""A cell of the matrix; colour is never the only sign."""

TEXT_LIMIT: Final = 1_500
"""Characters of one text in a line or a cell."""

FOLDED: Final = 30
"""A table of more rows is folded, where it says that it may be."""

MOST_CASES: Final = 20_000
"""A page of more cases shows some of them: each takes about 4 kB, and a browser shall not wait."""

SHOWN_CASES: Final = 4_000

_CHUNK: Final = 100_000
"""Characters of details that are packed together: alone, each takes several times the room."""

_TOP: Final = 2
"""The level of a section that the page leads to."""

_SHADES: Final = 10
_SHARES_NOTE: Final = "Passed of judged. The tooltip of a cell counts the stories that were not judged."
_TITLE_LIMIT: Final = 200
_MARKS: Final = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*(.+?)\*\*"), r"<b>\1</b>"),
    (re.compile(r"\*(.+?)\*"), r"<em>\1</em>"),
)
"""What the marks of our own words stand for."""

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
    finds the story of a case; `lead` is what it came to, with marks of Markdown, `facts` what it was made with;
    `sections` are below the stories. `above`, where it is given, stands in the place of what the page would say of its
    cases as a whole; `empty` says what a cell without a sign is.
    """

    title: str
    lines_of: LinesOf
    facts: Mapping[str, str]
    lead: str = ""
    last: Run | None = None
    safe: Callable[[CaseResult], CaseResult] = lambda case: case
    sections: Sequence[Section] = ()
    above: Sequence[Section] | None = None
    empty: str = "not meant for this target"


def render_page(runs: Sequence[NamedRun], given: PageInput) -> str:
    """Return the page as HTML. Every text of a story or a target is escaped, and the page may run its own script only.

    `runs` have their steps where there are any.
    """
    columns = columns_of(runs)
    stories, left_out = _shown_stories(columns)
    first = _first_sections(runs, columns, given.last) if given.above is None else given.above
    drawn = plots(columns, latencies(columns)) if given.above is None else ()
    script, style = _own("page.js"), _own("page.css")
    page, drawing = _template("page.html"), _template("plot.svg")
    context = {
        "title": given.title, "head": _head(runs, given), "style": style, "script": script,
        "script_hash": _hash(script), "style_hash": _hash(style), "signs": SIGNS, "outcomes": OUTCOMES,
        "harms": HARMS, "columns": [visible(one.title) for one in columns], "groups": _groups(columns),
        "first": [one for one in first if one.parts], "empty": given.empty,
        "rows": list(_rows(columns, stories)), "left_out": left_out,
        "draw": drawing.render, "plots": list(drawn),
        "most_series": MOST_SERIES, "is_comparison": len(runs) > 1,
        "sections": [one for one in given.sections if one.parts],
        "chunks": _chunks(columns, stories, given),
    }  # fmt: skip
    return page.render(context)


@cache
def _template(name: str) -> Template:
    """Return a template of our own, read and compiled once: a large run has a page for every thousand cases."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (a start of pytest must not pay for it)

    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters.update(quantity=quantity, id=_id)
    templates.globals["as_html"] = as_html
    return templates.from_string(_own(name))


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _head(runs: Sequence[NamedRun], given: PageInput) -> Document:
    made = [Fold("How it was run", [Table(["", ""], list(given.facts.items()))])] if given.facts else []
    notes = [*([Markup(given.lead)] if given.lead else []), *stand_in_words([named.run for named in runs])]
    return [*map(Note, notes), *made]


def _first_sections(runs: Sequence[NamedRun], columns: Sequence[Column], last: Run | None) -> Sequence[Section]:
    """Return what is above the stories."""
    changes = [change for named in runs for change in changes_since(last, named.run)]
    words = {name: text for named in runs for name, text in changes_by_target(last, named.run).items()}
    found = causes(columns)
    return [
        memories_section(columns, found, latencies(columns)),
        essential_section(columns),
        Section("Totals", totals_parts(columns, words)),
        causes_section(found),
        changes_section(changes),
        obligations_section(obligations_by_column(columns), begins_with_note=True),
        capability_section(capability_scores(columns), [one.title for one in columns], _SHARES_NOTE),
    ]


def as_html(document: Document) -> str:
    """Return the parts as HTML, every text escaped."""
    return "\n".join(map(_part, document))


def _part(part: Part) -> str:
    match part:
        case Note(text):
            return f'<p class="note">{_words(text)}</p>'
        case Table():
            return _table(part)
        case Items(items):
            return f"<ul>{''.join(map(_item, items))}</ul>"
        case Block(text, limit):
            return f"<pre>{escape(visible(shorten(text, limit)))}</pre>"
        case Fold(title, inner):
            return f"<details><summary>{_words(title)}</summary>\n{as_html(inner)}\n</details>"
        case Section(title, inner, level):
            place = f' id="{_id(title)}"' if isinstance(title, str) and level == _TOP else ""
            return f"<section{place}>\n<h{level}>{_words(title)}</h{level}>\n{as_html(inner)}\n</section>"


def _table(table: Table) -> str:
    numbers = table.number_columns
    kinds = [f"n {name if name in OUTCOMES else ''}" if at in numbers else "" for at, name in enumerate(table.header)]
    header = "".join(_cell(name, kind, ' scope="col"') for name, kind in zip(table.header, kinds, strict=True))
    rows = [_cell(row[0], kinds[0], ' scope="row"') + "".join(map(_cell, row[1:], kinds[1:])) for row in table.rows]
    head = f"<thead><tr>{header}</tr></thead>\n" if any(table.header) else ""
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    text = f'<div class="wide"><table>\n{head}<tbody>\n{body}\n</tbody></table></div>'
    if table.may_fold and len(rows) > FOLDED:
        return f"<details><summary>{quantity(len(rows), 'row')}</summary>{text}</details>"
    return text


def _cell(cell: Words, kind: str, scope: str = "") -> str:
    """Return a cell of a table: `scope` makes it the head of its column or row."""
    tag, tip = "th" if scope else "td", ""
    if isinstance(cell, ShareCell):
        kind += f" q{int(cell.share * _SHADES)}" if cell.share is not None else ""
        tip = f' title="{escape(cell.more)}"' if cell.more else ""
    shown = f' class="{kind.strip()}"' if kind.strip() else ""
    return f"<{tag}{scope}{shown}{tip}>{_words(cell)}</{tag}>"


def _item(item: ListItem) -> str:
    inner = "".join(f"<li>{_words(line)}</li>" for line in item.inner)
    block = _part(Block(item.block, BLOCK_LIMIT)) if item.block else ""
    return f"<li>{_words(item.text)}{f'<ul>{inner}</ul>' if inner else ''}{block}</li>"


def _words(words: Words) -> str:
    match words:
        case Sign() | Badge():
            return f'<span class="{"badge " * isinstance(words, Badge)}{words}">{words}</span>'
        case Markup():
            return _mark_words(words)
        case str():
            return _text(words)
        case CaseLink() | FileLink():
            where = quote(words.path) if isinstance(words, FileLink) else words.fragment
            return f'<a href="{where}">{_text(words.text)}</a>'
        case PlaceLink(text):
            return _text(text)
        case _:
            return "".join(map(_words, words))


def _mark_words(words: str) -> str:
    text = escape(words)
    for mark, tag in _MARKS:
        text = mark.sub(tag, text)
    return text


def _text(text: str) -> str:
    return escape(visible(shorten(text, TEXT_LIMIT)))


def _id(title: str) -> str:
    """Return a title as the name of a place: `failures-by-cause`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _groups(columns: Sequence[Column]) -> list[str]:
    return sorted({name for column in columns for case in column.cases.values() for name in groups_of(case)})


def _rows(columns: Sequence[Column], stories: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield each story: its name, title, groups, harm, and its outcome in each column."""
    groups = {name: number for number, name in enumerate(_groups(columns))}
    for story in stories:
        cases = [one.cases.get(story) for one in columns]
        case = next(one for one in cases if one is not None)
        yield {
            "name": visible(story),
            "slug": visible(case.slug or ""),
            "title": visible(shorten(case.title or UNREADABLE, _TITLE_LIMIT)),
            "groups": " ".join(str(groups[name]) for name in groups_of(case)),
            "harm": min((one.harm for one in cases if one and one.harm), key=HARMS.index, default=harm_of(case)),
            "tags": visible(" ".join(case.tags)),
            "outcomes": [one.outcome if one else "" for one in cases],
        }


def _shown_stories(columns: Sequence[Column]) -> tuple[Sequence[str], str]:
    """Return the stories of the page, and in words which are left out where there are too many."""
    stories, cases = _stories(columns), sum(len(one.cases) for one in columns)
    if cases <= MOST_CASES:
        return stories, ""
    most = max(1, SHOWN_CASES * len(stories) // cases)
    bad = [
        story for story in stories if any(one.cases[story].outcome in WRONG for one in columns if story in one.cases)
    ]
    good = stories[len(bad) :]
    shown = bad[:most]
    sample = good[:: max(1, ceil(len(good) / max(1, most - len(shown))))]
    return [*shown, *sample], (
        f"{cases:,} cases are more than a page can hold. Of {quantity(len(bad), 'story')} in which something "
        f"went wrong {len(shown):,} are here, of the {len(good):,} others a sample of {len(sample):,}. "
        "The totals above are of all; results.json beside this page has each case, and `memstory show RESULTS CASE` "
        "shows one."
    )


def _stories(columns: Sequence[Column]) -> list[str]:
    """Return the stories: first those that went wrong somewhere, then those of most columns."""
    found = by_key(pair for column in columns for pair in column.cases.items())
    return sorted(
        found,
        key=lambda story: (
            all(case.outcome not in WRONG for case in found[story]),
            -len(found[story]),
            natural(story),
        ),
    )


def _chunks(columns: Sequence[Column], stories: Sequence[str], given: PageInput) -> Iterator[tuple[int, str]]:
    """Yield all that is known of the stories, several together and packed, with the number of the first of them."""
    held: list[str] = []
    first = 0
    for number, told in enumerate(_details(columns, stories, given)):
        held.append(json.dumps(told, ensure_ascii=False, separators=(",", ":")))
        if sum(map(len, held)) >= _CHUNK:
            yield first, pack(held)
            first, held = number + 1, []
    if held:
        yield first, pack(held)


def _details(columns: Sequence[Column], stories: Sequence[str], given: PageInput) -> Iterator[Mapping[str, Tree]]:
    """Yield all that is known of one story after the other."""
    before = {case.id: case for case in given.last.cases} if given.last else {}
    for story in stories:
        cases = {one.title: one.cases[story] for one in columns if story in one.cases}
        first = next(iter(cases.values()))
        lines = given.lines_of(first)
        yield {
            "about": visible(" · ".join([first.where, *first.tags, *first.covers])),
            "first": lines.first if lines else 0,
            "lines": [visible(line) for line in lines.lines] if lines else [],
            "cases": {visible(name): _with_last(case, before.get(case.id), given) for name, case in cases.items()},
        }


def _with_last(case: CaseResult, last: CaseResult | None, given: PageInput) -> Mapping[str, Tree]:
    """Return the steps of a case, with those of the last run where they differ; `same` says that they do not.

    Nothing is shown of a last run that kept texts which are taken out of this one.
    """
    shown: dict[str, Tree] = {"outcome": case.outcome, "html": as_html(case_steps(case)), "bad": failed_lines(case)}
    if last is not None and bool(case.redacted.get("texts")) == bool(last.redacted.get("texts")):
        now = case_steps(case, with_times=False)
        # What equals a safe case is safe: only the others are searched.
        if case_steps(last, with_times=False) == now or case_steps(last := given.safe(last), with_times=False) == now:
            shown["same"] = True
        else:
            shown["last"] = as_html(case_steps(last))
    return shown


def pack(texts: Sequence[str]) -> str:
    """Return a list of JSON, deflated and in base64, as `DecompressionStream('deflate-raw')` of a browser reads it."""
    text = f"[{','.join(texts)}]".encode("utf-8", "backslashreplace")
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text) + packer.flush()).decode()


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
    for path in (*(root / name for root in roots), bundled_stories().parent / name, named_path(name)):
        try:
            text = path.read_bytes().decode()
        except (OSError, ValueError):
            continue
        return tuple(pieces(text.removeprefix("\ufeff"))) if len(text) <= MAX_CHARACTERS else ()
    return ()
