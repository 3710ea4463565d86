"""compare.md: what differs first, by harm and cause; the tables of every story last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memstory.reporting import views
from memstory.reporting.comparing.columns import Column
from memstory.reporting.comparing.comparison import Comparison
from memstory.reporting.comparing.sections import APPENDIX, FOLDED, Section, sections, summary
from memstory.reporting.escaping import inline, table
from memstory.reporting.overview.causes import causes
from memstory.reporting.overview.first_screen import causes_table, harms_in_words, totals_table
from memstory.reporting.overview.links import Links

_SUMMARY_LIMIT: Final = 2_000


def as_markdown(comparison: Comparison, columns: Sequence[Column], links: Links) -> str:
    """Return the comparison as a page; whatever a run said is escaped."""
    found = causes(columns)
    page = f"[{links.page}]({links.page}) shows every case, side by side." if links.page else ""
    head = " ".join(filter(None, [inline(summary(comparison), _SUMMARY_LIMIT), harms_in_words(found), page]))
    parts = ["# Comparison", head, totals_table(columns, {})]
    if found:
        parts.append(f"## Failures by cause\n\n{causes_table(found, links)}")
    every = list(sections(comparison))
    parts += [laid_out(one) for one in every if one.title not in APPENDIX]
    parts += [laid_out(one, fold=True) for one in every if one.title in APPENDIX]
    legend = ", ".join(f"{symbol} {outcome}" for outcome, symbol in views.SYMBOLS.items())
    return "\n\n".join(filter(None, [*parts, f"{legend}."])) + "\n"


def laid_out(section: Section, *, fold: bool = False) -> str:
    """Return a section as markdown, folded where it is long and may be."""
    right = range(len(section.header) if section.right is None else section.right, len(section.header))
    cells = [[views.SYMBOLS.get(cell := inline(each), cell) for each in row] for row in section.rows]
    text = table([inline(title) for title in section.header], cells, right=right)
    if len(cells) > FOLDED and (fold or section.may_fold):
        text = f"<details><summary>{len(cells)} rows</summary>\n\n{text}\n\n</details>"
    return "\n\n".join([f"## {section.title}", *([section.note] if section.note else []), text])
