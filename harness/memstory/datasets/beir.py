"""A folder in BEIR's form: corpus.jsonl, queries.jsonl, and qrels.tsv or qrels/*.tsv; the format for users' own data.

A title comes before the text, as BEIR's own retrievers have it. A document is relevant to a question if its grade is
above 0. Only questions that the qrels name are asked; `metadata: {category: …}` of a query groups its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from memstory.contract.errors import Mark, SetupError
from memstory.contract.target import Tree
from memstory.datasets.jsonl import usable_questions
from memstory.language.json_lines import numbered_lines, raise_line_error
from memstory.language.story import Retrieval
from memstory.tasks.retrieval import Collection, Document, FileValues, Question, RetrievalTask, digest_of

USUAL_SPLIT: Final = "test"

Grades = Mapping[str, Mapping[str, int]]
"""What a judge gave each document of each question."""


def read_beir(folder: Path, retrieval: Retrieval) -> RetrievalTask:
    """Return the task of a folder; what is missing is a SetupError, a bad line a StoryError that names it."""
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    for path in (queries,) if retrieval.preloaded else (corpus, queries):
        if not path.is_file():
            raise SetupError(f"{folder} has no {path.name}: a folder in BEIR's form holds it")
    grades = _grades(_qrels(folder, retrieval.split), retrieval.mark)
    if retrieval.preloaded:
        return _questions_alone(folder, tuple(_questions(queries, grades, retrieval.mark)), grades)
    documents = partial(_documents, corpus, retrieval.mark)
    count, known = 0, set()
    for document in documents():
        count += 1
        known.add(document.id)
    if len(known) < count:
        raise SetupError(f"{corpus} uses an id twice: {count} documents have {len(known)} ids")
    asked = tuple(_questions(queries, grades, retrieval.mark))
    questions, unusable = usable_questions(asked, frozenset(known))
    collection = Collection(id=folder.name, documents=FileValues(count, documents), questions=questions)
    return RetrievalTask(
        name=folder.name,
        collections=(collection,),
        unusable=(*unusable, *_missing_questions(asked, grades)),
        digest=digest_of((collection,)),
    )


def _questions_alone(folder: Path, asked: tuple[Question, ...], grades: Grades) -> RetrievalTask:
    collection = Collection(id=folder.name, documents=(), questions=asked)
    return RetrievalTask(
        name=folder.name,
        collections=(collection,),
        unusable=tuple(_missing_questions(asked, grades)),
        digest=digest_of((collection,)),
    )


def _qrels(folder: Path, split: str | None) -> Path:
    found = {path.stem: path for path in sorted(folder.glob("qrels/*.tsv"))}
    if split is None and (folder / "qrels.tsv").is_file():
        return folder / "qrels.tsv"
    wanted = split or (next(iter(found)) if len(found) == 1 else USUAL_SPLIT)
    if wanted not in found:
        there = ", ".join(f"qrels/{name}.tsv" for name in found) or "no qrels"
        raise SetupError(f"{folder} has no qrels/{wanted}.tsv; it has {there}: name one of them by 'split'")
    return found[wanted]


def _grades(path: Path, mark: Mark) -> Grades:
    """Return the grades of a file of question, document, grade; TREC's form with a 0 as its second column will do."""
    grades: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            cells = line.split()
            if not cells or (number == 1 and not cells[-1].lstrip("-").isdigit()):
                continue  # the header
            if len(cells) not in {3, 4} or not cells[-1].lstrip("-").isdigit():
                raise_line_error(
                    path.name, number, f"found {line.strip()!r}, allowed is: question, document, grade", mark
                )
            grades.setdefault(cells[0], {})[cells[-2]] = int(cells[-1])
    return grades


def _documents(path: Path, mark: Mark) -> Iterator[Document]:
    for number, row in numbered_lines(path, mark):
        id_, text = _id_and_text(row, path, number, mark)
        whole = f"{row.get('title') or ''} {text}".strip()
        # A few corpora have documents without a word, which nobody can find.
        if whole:
            yield Document(id=id_, text=whole, metadata=row.get("metadata") or {})


def _questions(path: Path, grades: Grades, mark: Mark) -> Iterator[Question]:
    for number, row in numbered_lines(path, mark):
        id_, text = _id_and_text(row, path, number, mark)
        if id_ in grades:
            relevant = tuple(document for document, grade in grades[id_].items() if grade > 0)
            metadata = row.get("metadata") or {}
            category = metadata.get("category")
            yield Question(
                id=id_,
                text=text,
                relevant=relevant,
                judged=bool(relevant),
                category=category if isinstance(category, str) else None,
                metadata=metadata,
            )


def _missing_questions(asked: tuple[Question, ...], grades: Grades) -> Iterator[str]:
    there = {question.id for question in asked}
    yield from (f"{id_}: no query has this id" for id_ in grades if id_ not in there)
    yield from (f"{question.id}: no document has a grade above 0" for question in asked if not question.relevant)


def _id_and_text(row: Tree, path: Path, number: int, mark: Mark) -> tuple[str, str]:
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("_id", "text")):
        raise_line_error(path.name, number, "a row is an object with the texts '_id' and 'text'", mark)
    return row["_id"], row["text"]
