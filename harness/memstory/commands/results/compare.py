"""`memstory compare`: targets and runs side by side."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memstory.commands.command import FINDINGS, OK, USAGE, Command, add_json
from memstory.commands.output import say, say_json
from memstory.commands.results.results_files import runs_at
from memstory.contract.codec import encode
from memstory.contract.errors import SetupError
from memstory.reporting.document import visible
from memstory.reporting.markdown import Links, as_markdown
from memstory.reporting.page.html import PageInput, render_page
from memstory.reporting.sections.columns import columns_of, named_column
from memstory.reporting.sections.comparison import (
    APPENDIX,
    Comparison,
    compare,
    comparison_document,
    comparison_sections,
    comparison_tables,
)
from memstory.reporting.sections.differences import differences_in_words
from memstory.reporting.terminal import as_text
from memstory.reporting.writing import PageOptions
from memstory.results.folder.whole_files import write_text, writing
from memstory.results.likeness import run_differences
from memstory.results.runs import NamedRun, quantity

_TWO = 2
PAGE = ".html"
_DRAWN = (*APPENDIX, "By capability", "What a memory owes")
"""Tables of a comparison that its page shows in its own way."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="the folder of a run, or a results.json of any name, such as a baseline",
    )
    parser.add_argument("--against", metavar="COLUMN", help="compare every column with this one (default: the same "
                        "target in an earlier run, else the first column)")  # fmt: skip
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write a page of markdown, and beside it "
        "the same as FILE.html; a FILE that ends in .html is written alone",
    )
    parser.add_argument("--diff", action="store_true", help="list what differs between two runs of one target")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    runs = runs_at(chosen.results, with_steps=chosen.diff)
    unlike = run_differences(runs)
    if unlike:
        sys.stderr.write(_refusal(unlike))
        return USAGE
    if chosen.diff:
        return _diff(runs)
    columns = columns_of(runs)
    if len(columns) < _TWO:
        raise SetupError("one target of one run is nothing to compare: name another run, or run another target too")
    if chosen.output:
        # Before the comparison, which takes a minute for many columns.
        with writing(chosen.output):
            chosen.output.parent.mkdir(parents=True, exist_ok=True)
    comparison = compare(runs, named_column(columns, chosen.against) if chosen.against else None)
    if chosen.output:
        _write(chosen.output, comparison, chosen.results)
    if chosen.json:
        say_json(encode(comparison))
    elif chosen.output:
        say(
            f"{_output_names(chosen.output)}: {quantity(len(columns), 'column')}, "
            f"{quantity(len(comparison.rows), 'story')}"
        )
    else:
        say(as_text(comparison_tables(comparison)))
    return OK


def _write(output: Path, comparison: Comparison, results: Sequence[Path]) -> None:
    runs = runs_at(results, with_steps=True)
    if output.suffix != PAGE:
        links = Links(folder=output.parent, page=output.with_suffix(PAGE).name, roots=[Path.cwd()])
        write_text(output, as_markdown(comparison_document(comparison, columns_of(runs), links.page), links))
    page = PageInput(
        title=f"comparison of {quantity(len(comparison.columns), 'column')}",
        facts={"Stories": str(len(comparison.rows)), "Runs": ", ".join(named.name for named in runs)},
        lines_of=PageOptions().lines_of(),
        sections=[one for one in comparison_sections(comparison) if one.title not in _DRAWN],
    )
    write_text(output.with_suffix(PAGE), render_page(runs, page))


def _output_names(output: Path) -> str:
    return str(output) if output.suffix == PAGE else f"{output} and {output.with_suffix(PAGE).name}"


def _refusal(unlike: Sequence[str]) -> str:
    return visible(
        "memstory compare: these runs cannot be compared; run the stories again, or leave out what differs (-k):\n"
        + "".join(f"  {line}\n" for line in unlike)
    )


def _diff(runs: Sequence[NamedRun]) -> int:
    columns = columns_of(runs)
    if len(runs) != _TWO or len(columns) != _TWO or columns[0].target != columns[1].target:
        raise SetupError(
            "--diff is for two runs of one target, given are "
            f"{', '.join(f'{one.run.name} with {one.target}' for one in columns) or 'runs without a target'}"
        )
    lines = differences_in_words(*columns)
    say(visible("\n".join(lines)) if lines else "no difference, except for times")
    return FINDINGS if lines else OK


COMMAND = Command(
    about=(
        "Put targets and runs side by side: the matrix of stories, what flipped, retrieval scores with the "
        "interval of each difference, times, and what each could not do. Runs of other stories, data, k, trials or "
        "seeds are refused; targets, versions, embedders, models and options may differ and are shown. With --diff, "
        "what the memory did differently in two runs of one target."
    ),
    examples="""
examples:
  memstory compare reports/latest                              the targets of one run
  memstory compare reports/mine reports/other --output compare.md
  memstory compare reports/latest --against topics --json
  memstory compare reports/before reports/after --diff         two runs of one target
""",
    exit_codes=("exit codes: 0 compared, 1 with --diff: they differ, 2 the runs cannot be compared or read"),
    options=_options,
    run=_run,
)
