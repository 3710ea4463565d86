"""Retrieval as TREC files: what is relevant (qrels), and what each target found (run), for other tools to score.

Scores fall strictly from rank to rank, since tools order equal ones differently. Questions that are not judged, stand
apart or have no answer are left out, as in our own totals. One for which nothing came back names a document that does
not exist: some tools leave out what a run does not mention, instead of counting it as 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from memstory.results.outcomes import CaseResult
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.results.runs import Run
from memstory.tasks.perturbation import level_name

NOTHING: Final = "nothing-came-back"


def trec_files(run: Run) -> Mapping[str, str]:
    """Return the files by name: a qrels for each story and level, and a run for each target beside it."""
    files: dict[str, str] = {}
    for case in run.cases:
        for record in case.retrieval:
            level = f".{_word(name)}" if (name := level_name(record.level)) not in {"", "plain"} else ""
            place = f"{_word(case.name)}{level}"
            files[f"{place}.qrels"] = "".join(_qrels(record))
            files[f"{place}.{_word(case.target)}.run"] = "".join(_run(case, record))
    return {name: text for name, text in files.items() if text}


def _qrels(record: RetrievalRecord) -> Iterator[str]:
    for number, asked in _questions(record):
        yield from (f"{number} 0 {_word(gold)} 1\n" for gold in asked.relevant)


def _run(case: CaseResult, record: RetrievalRecord) -> Iterator[str]:
    tag = _word(case.target)
    for number, asked in _questions(record):
        found = list(dict.fromkeys(asked.retrieved)) or [NOTHING]
        for rank, document in enumerate(found, start=1):
            yield f"{number} Q0 {_word(document)} {rank} {len(found) - rank + 1} {tag}\n"


def _questions(record: RetrievalRecord) -> Iterator[tuple[str, QuestionRecord]]:
    """Yield the questions that count, each with its own name: collections of one task may use an id twice."""
    seen: dict[str, int] = {}
    for asked in record.questions:
        times = seen[asked.id] = seen.get(asked.id, 0) + 1
        if asked.judged and asked.relevant and asked.category not in record.apart:
            yield _word(asked.id if times == 1 else f"{asked.id}~{times}"), asked


def _word(text: str) -> str:
    """Return a text as one word: the columns of TREC files are separated by blanks.

    >>> _word("control:random"), _word("a b/c")
    ('control:random', 'a_b_c')
    """
    return re.sub(r"[\s/\\]+", "_", text)
