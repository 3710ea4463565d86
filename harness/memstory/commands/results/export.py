"""`memstory export`: a run in files that other tools read: CSV for spreadsheets, TREC for tools that score."""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.commands.results.results_files import run_at
from memstory.contract.errors import SetupError
from memstory.reporting.document import visible
from memstory.reporting.sections.differences import counted_questions
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import CaseResult
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.results.runs import Run, quantity
from memstory.tasks.perturbation import level_name

NOTHING: Final = "nothing-came-back"
"""In a TREC run, the document of a question for which nothing came back."""

_CASE: Final = (
    "id", "story", "row", "slug", "title", "target", "outcome", "harm", "reason", "seconds", "trials", "trials_passed",
    "tags", "covers", "needs", "where", "digest",
)  # fmt: skip
_SCORE: Final = ("id", "target", "metric", "category", "level", "value", "low", "high", "questions")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_files(run: Run) -> Mapping[str, str]:
    """Return the files by name. A text that a spreadsheet would take for a formula has an apostrophe before it."""
    files = {"cases.csv": _csv_text(_CASE, map(_case_row, run.cases))}
    scores = [row for case in run.cases for row in _score_rows(case)]
    return {**files, "scores.csv": _csv_text(_SCORE, scores)} if scores else files


def _case_row(case: CaseResult) -> Sequence[object]:
    passed = sum(trial.outcome == "passed" for trial in case.trials)
    lists = (" ".join(words) for words in (case.tags, case.covers, case.needs))
    return (
        case.id, case.story, case.row, case.slug, case.title, case.target, case.outcome, case.harm, case.reason,
        round(case.seconds, 6), len(case.trials), passed, *lists, case.where, case.digest,
    )  # fmt: skip


def _score_rows(case: CaseResult) -> Iterable[Sequence[object]]:
    for one in case.scores:
        level, value = level_name(one.level), round(one.value, 6)
        yield case.id, case.target, one.metric, one.category, level, value, one.low, one.high, one.questions


def _csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Return a value as its cell: what a memory answered is data, and a spreadsheet runs what begins like a formula.

    >>> _cell("=1+1"), _cell("tea"), _cell(-1.5), _cell(None)
    ("'=1+1", 'tea', -1.5, None)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def trec_files(run: Run) -> Mapping[str, str]:
    """Return the TREC files by name: a qrels for each story and level, and a run for each target beside it.

    Scores fall strictly from rank to rank, since tools order equal ones differently. Questions that are not judged,
    stand apart or have no answer are left out, as in our own totals. One for which nothing came back names a document
    that does not exist: some tools leave out what a run does not mention, instead of counting it as 0.
    """
    files: dict[str, str] = {}
    for case in run.cases:
        for record in case.retrieval:
            level = f".{_word(name)}" if (name := level_name(record.level)) not in {"", "plain"} else ""
            place = f"{_word(case.name)}{level}"
            files[f"{place}.qrels"] = "".join(_qrel_lines(record))
            files[f"{place}.{_word(case.target)}.run"] = "".join(_run_lines(case, record))
    return {name: text for name, text in files.items() if text}


def _qrel_lines(record: RetrievalRecord) -> Iterator[str]:
    for number, asked in _questions(record):
        yield from (f"{number} 0 {_word(gold)} 1\n" for gold in asked.relevant)


def _run_lines(case: CaseResult, record: RetrievalRecord) -> Iterator[str]:
    tag = _word(case.target)
    for number, asked in _questions(record):
        found = list(dict.fromkeys(asked.retrieved)) or [NOTHING]
        for rank, document in enumerate(found, start=1):
            yield f"{number} Q0 {_word(document)} {rank} {len(found) - rank + 1} {tag}\n"


def _questions(record: RetrievalRecord) -> Iterator[tuple[str, QuestionRecord]]:
    """Yield the questions that count and have an answer, each with a name of its own."""
    for (id_, number), asked in counted_questions(record):
        if asked.relevant:
            yield _word(id_ if number == 1 else f"{id_}~{number}"), asked


def _word(text: str) -> str:
    """Return a text as one word: the columns of TREC files are separated by blanks.

    >>> _word("control:random"), _word("a b/c")
    ('control:random', 'a_b_c')
    """
    return re.sub(r"[\s/\\]+", "_", text)


_FORMS: Final[Mapping[str, Callable[[Run], Mapping[str, str]]]] = {"csv": csv_files, "trec": trec_files}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("form", choices=_FORMS, help="csv: a row for each case and each score; trec: qrels and runs "
                        "for trec_eval, ir_measures and ranx")  # fmt: skip
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or a results.json")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of the files (default: one of the "
                        "form's name in that folder)")  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    files = _FORMS[chosen.form](run_at(chosen.results))
    if not files:
        raise SetupError(f"{chosen.results} holds no retrieval: run stories that have one")
    folder = chosen.results if chosen.results.is_dir() else chosen.results.parent
    output: Path = chosen.output or folder / chosen.form
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A name may hold what Windows does not take.
            write_text(output / name.replace(":", "_"), text)
    except OSError as error:
        raise SetupError(f"nothing can be written to {output}: {error.strerror}. Name another --output") from error
    say(visible(f"{output}: {quantity(len(files), 'file')}"))
    return OK


COMMAND = Command(
    about=(
        "Write a run in a form that other tools read. csv: cases.csv has a row for each case, scores.csv one for each "
        "score. trec: what is relevant (STORY.qrels) and what each target found (STORY.TARGET.run), so that other "
        "tools can score it; scores decrease strictly with the rank, and questions without an answer are left out."
    ),
    examples="""
examples:
  memstory export csv reports/latest
  memstory export trec reports/latest
  ir_measures reports/latest/trec/Q1.qrels reports/latest/trec/Q1.topics.run nDCG@10 R@10
""",
    exit_codes=("exit codes: 0 written, 2 there is no run, or for trec none that retrieved anything"),
    options=_options,
    run=_run,
)
