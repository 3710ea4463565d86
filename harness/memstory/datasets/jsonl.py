"""A corpus and its queries as JSON Lines.

A document is `{"id", "text", "key"?, "kind"?, "metadata"?}`, a query `{"id", "text", "relevant": [ids], "category"?,
"wording"?, "stale"?: [ids], "asked_at"?, "cluster"?, "metadata"?}`, where `relevant: []` says that nothing may be
returned. Empty lines are allowed. Documents are read line by line whenever they are needed, however many there are.
`where:` of a retrieval says which of both take part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeVar

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree
from memstory.contract.texts import did_you_mean
from memstory.language.json_lines import parse_line, raise_line_error
from memstory.tasks.retrieval import Collection, Document, FileValues, Question, RetrievalTask, digest_of

FIELDS: Final = ("category", "wording", "kind", "key")
"""What `where` may name beside `metadata`."""

_ABSENT: Final = object()


def is_selected(row: Document | Question, where: Mapping[str, Tree]) -> bool:
    """Return whether a row takes part: no field that `where` names has another value in it.

    A field is one of `FIELDS` or of the row's `metadata`; a row that has no such field takes part.

    >>> turn = Document(id="t", text="…", metadata={"circle": 1})
    >>> is_selected(turn, {"circle": [1, 3], "wording": 2}), is_selected(turn, {"circle": 2})
    (True, False)
    """
    for name, wanted in where.items():
        found = _field(row, name)
        if found is not _ABSENT and found not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def filterable_fields(row: Document | Question) -> frozenset[str]:
    """Return the fields of this row that `where` could name."""
    return frozenset(name for name in FIELDS if _field(row, name) is not _ABSENT) | frozenset(row.metadata)


def _field(row: Document | Question, name: str) -> Tree:
    found = getattr(row, name, None) if name in FIELDS else None
    return row.metadata.get(name, _ABSENT) if found is None else found


DOCUMENT_FIELDS = {
    "id": "text",
    "text": "text",
    "key": "text",
    "kind": "text",
    "metadata": "object",
    "outdated": "list of texts",
}
QUERY_FIELDS = {
    "id": "text",
    "text": "text",
    "relevant": "list of texts",
    "category": "text",
    "variants": "list of texts",
    "wording": "number",
    "stale": "list of texts",
    "asked_at": "text",
    "cluster": "text",
    "metadata": "object",
}
_TEXTS: Final = frozenset(name for name, kind in DOCUMENT_FIELDS.items() if kind == "text")
_SHOWN = 20
_BATCH: Final = 1000
_MAY_BE_EMPTY = ("relevant", "stale")

HELD: Final = 10_000
"""Up to this many documents are kept in memory; of more, no more than go into one call."""

_KINDS = {str: "text", dict: "object", bool: "true or false", int: "number", float: "number", list: "list"}

Row = TypeVar("Row", Document, Question)

_FORMS: Mapping[type, tuple[Mapping[str, str], Sequence[str]]] = {
    Document: (DOCUMENT_FIELDS, ("id", "text")),
    Question: (QUERY_FIELDS, ("id", "text", "relevant")),
}
"""The fields of each kind of row, and those that it needs."""


def read_task(corpus: Path, queries: Path, mark: Mark, where: Mapping[str, Tree] | None = None) -> RetrievalTask:
    """Return the task of two files; a bad line is a StoryError that names `file:line` after the story's own place.

    `where` selects documents and questions by their fields, as `memstory.datasets.jsonl` says.
    """
    try:
        return _read_task(corpus, queries, mark, where or {})
    except StoryError as error:
        wrong = [*_faults(Document, corpus, mark), *_faults(Question, queries, mark)]
        if not wrong:
            raise
        more = [f"and {len(wrong) - _SHOWN} more lines"] if len(wrong) > _SHOWN else []
        raise StoryError("\n".join([*wrong[:_SHOWN], *more]), mark) from error


def _read_task(corpus: Path, queries: Path, mark: Mark, where: Mapping[str, Tree]) -> RetrievalTask:
    fields: set[str] = set()
    # Gone through once for what is wrong and for the ids; a large corpus again each time that somebody needs it.
    rows = _check_rows(Document, corpus, mark, where, fields)
    held = tuple(islice(rows, HELD + 1))
    known = frozenset(document.id for document in chain(held, rows))
    asked = tuple(_check_rows(Question, queries, mark, where, fields))
    _check_found(where, fields, {corpus: known, queries: asked}, mark)
    questions, unusable = usable_questions(asked, known)
    large = FileValues(len(known), partial(_select_rows, Document, corpus, mark, where))
    collection = Collection(id=corpus.stem, documents=large if len(held) > HELD else held, questions=questions)
    return RetrievalTask(
        name=queries.stem.removesuffix(".queries"),
        collections=(collection,),
        unusable=unusable,
        digest=digest_of((collection,)),
    )


def read_questions(queries: Path, mark: Mark, where: Mapping[str, Tree]) -> RetrievalTask:
    """Return the task of the questions alone, for a memory that has the documents; errors are those of `read_task`."""
    fields: set[str] = set()
    try:
        asked = tuple(_check_rows(Question, queries, mark, where, fields))
    except StoryError as error:
        raise StoryError("\n".join(_faults(Question, queries, mark)) or error.message, mark) from error
    _check_found(where, fields, {queries: asked}, mark)
    collection = Collection(id=queries.stem, documents=(), questions=asked)
    return RetrievalTask(
        name=queries.stem.removesuffix(".queries"), collections=(collection,), digest=digest_of((collection,))
    )


def _check_found(where: Mapping[str, Tree], fields: AbstractSet[str], found: Mapping[Path, Sized], mark: Mark) -> None:
    for name in where:
        if name not in fields:
            raise StoryError(f"'where' names {name!r}, a field that no row has: {', '.join(sorted(fields))}", mark)
    for path, rows in found.items():
        if not rows:
            what = "line that 'where' selects" if where else "line"
            raise StoryError(f"{path.name} holds no {what}: allowed is one JSON object per line", mark)


def read_documents(path: Path, mark: Mark) -> tuple[Document, ...]:
    """Return the documents of one file; a bad line is a StoryError that names `file:line` after `mark`."""
    return tuple(_check_rows(Document, path, mark, {}, set()))


def usable_questions(asked: Sequence[Question], known: frozenset[str]) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """Leave gold ids out that no document has; a question that had only such ids cannot be judged."""
    questions, unusable = [], []
    for question in asked:
        relevant = tuple(gold for gold in question.relevant if gold in known)
        unusable += [
            f"{question.id}: no document has the id {gold!r}"
            for gold in (*question.relevant, *question.stale)
            if gold not in known
        ]
        all_known = len(relevant) == len(question.relevant)
        questions.append(question if all_known else replace(question, relevant=relevant, judged=bool(relevant)))
    return tuple(questions), tuple(unusable)


def _check_rows(make: type[Row], path: Path, mark: Mark, where: Mapping[str, Tree], fields: set[str]) -> Iterator[Row]:
    """Yield the rows that take part, each with an id; `fields` gets what `where` could name."""
    first: dict[str, int] = {}
    for number, row in _rows(make, path, mark):
        if first.setdefault(row.id, number) != number:
            _note_id(row.id, first, path.name, number, mark)
        if where:
            fields |= filterable_fields(row)
        if not where or is_selected(row, where):
            yield row


def _select_rows(make: type[Row], path: Path, mark: Mark, where: Mapping[str, Tree]) -> Iterator[Row]:
    return (row for _, row in _rows(make, path, mark) if is_selected(row, where))


def _rows(make: type[Row], path: Path, mark: Mark) -> Iterator[tuple[int, Row]]:
    name = path.name  # Once: for a path it is work, and a corpus has thousands of lines.
    with path.open("rb") as file:
        numbered = ((number, raw) for number, raw in enumerate(file, start=1) if raw.strip())
        while batch := list(islice(numbered, _BATCH)):
            trees = _plain_documents([raw for _, raw in batch]) if make is Document else None
            if trees is not None:
                yield from ((number, make(**tree)) for (number, _), tree in zip(batch, trees, strict=True))
            else:
                parsed = ((number, parse_line(raw, name, number, mark)) for number, raw in batch)
                yield from ((number, _row(make, tree, name, number, mark)) for number, tree in parsed)


def _plain_documents(raws: Sequence[bytes]) -> Sequence[dict[str, Tree]] | None:
    """Return the objects of lines that have nothing but texts, and nothing wrong, in half of the time; else None."""
    try:
        text = b",".join(raws).decode()
        trees: Sequence[dict[str, Tree]] = json.loads(f"[{text}]")
    except (ValueError, RecursionError):
        return None
    # A text cannot hold a line end, nor an object of texts an object: as many as there are lines is one in each line.
    # A text and its name have four quotes: where there are more, one is in a text, or a field was given twice.
    are_plain = (
        len(trees) == len(raws)
        and {dict}.issuperset(map(type, trees))
        and {str}.issuperset(map(type, chain.from_iterable(tree.values() for tree in trees)))
        and _TEXTS.issuperset(chain.from_iterable(trees))
        and text.count('"') == 4 * sum(map(len, trees))
        and all("id" in tree and "text" in tree and tree["id"].strip() and tree["text"].strip() for tree in trees)
    )
    return trees if are_plain else None


def _row(make: type[Row], tree: Tree, file: str, number: int, mark: Mark) -> Row:
    known, required = _FORMS[make]
    if problem := _problem(tree, known, required):
        raise_line_error(file, number, problem, mark)
    for name in [name for name, value in tree.items() if type(value) is list]:
        tree[name] = tuple(tree[name])
    return make(**tree)


def _faults(make: type[Row], path: Path, mark: Mark) -> Iterator[str]:
    """Yield all that is wrong with the lines of a file, for an author to mend at once."""
    first: dict[str, int] = {}
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                try:
                    row = _row(make, parse_line(raw, path.name, number, mark), path.name, number, mark)
                    _note_id(row.id, first, path.name, number, mark)
                except StoryError as error:
                    yield error.message


def _note_id(row: str, first: dict[str, int], file: str, number: int, mark: Mark) -> None:
    if row in first:
        raise_line_error(file, number, f"the id {row!r} was used in line {first[row]} already", mark)
    first[row] = number


def _problem(tree: Tree, fields: Mapping[str, str], required: Sequence[str]) -> str | None:
    """Return what is wrong with one line, or None."""
    if not isinstance(tree, dict):
        return f"found {_kind(tree)}, allowed is an object with the fields {', '.join(fields)}"
    for name, value in tree.items():
        if fields.get(name) == "text" and type(value) is str:
            continue  # nearly all of them
        if name not in fields:
            return f"unknown field {name!r}. Known: {', '.join(fields)}.{did_you_mean(name, fields)}"
        if _kind(value) != fields[name] and not (value == [] and name in _MAY_BE_EMPTY):
            return f"{name!r} is {_kind(value)}, allowed is {fields[name]}"
    for name in required:
        if name not in tree:
            return f"the field {name!r} is missing"
        if isinstance(tree[name], str) and not tree[name].strip():
            return f"{name!r} is empty"
    gold = tree.get("relevant")
    return "'relevant' names an id twice" if gold and len(set(gold)) < len(gold) else None


def _kind(value: Tree) -> str:
    kind = _KINDS.get(type(value), "null")
    return "list of texts" if kind == "list" and value and all(isinstance(inner, str) for inner in value) else kind
