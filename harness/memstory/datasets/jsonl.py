"""A corpus and its queries as JSON Lines.

A document is `{"id", "text", "key"?, "kind"?, "metadata"?}`, a query `{"id", "text", "relevant": [ids], "category"?}`,
where `relevant: []` says that nothing may be returned. Empty lines are allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeVar

from memstory.datasets.digest import digest_of
from memstory.errors import Mark, StoryError
from memstory.target import Json
from memstory.tasks.retrieval import Collection, Document, Question, RetrievalTask

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
}

_KINDS = {str: "text", dict: "object", bool: "true or false", int: "number", float: "number", list: "list"}

Identified = TypeVar("Identified", Document, Question)


def read_task(corpus: Path, queries: Path, mark: Mark) -> RetrievalTask:
    """Return the task of two files; a bad line is a StoryError that names `file:line` after the story's own place."""
    documents = read_documents(corpus, mark)
    asked = _unique(Question, _lines(queries, mark, QUERY_FIELDS, required=("id", "text", "relevant")), queries, mark)
    for path, found in ((corpus, documents), (queries, asked)):
        if not found:
            raise StoryError(f"{path.name} holds no line: allowed is one JSON object per line", mark)
    questions, unusable = _usable(asked, frozenset(document.id for document in documents))
    collection = Collection(id=corpus.stem, documents=documents, questions=questions)
    return RetrievalTask(
        name=queries.stem.removesuffix(".queries"),
        collections=(collection,),
        unusable=unusable,
        digest=digest_of((collection,)),
    )


def read_documents(path: Path, mark: Mark) -> tuple[Document, ...]:
    """Return the documents of one file; a bad line is a StoryError that names `file:line` after `mark`."""
    return _unique(Document, _lines(path, mark, DOCUMENT_FIELDS, ("id", "text")), path, mark)


def _usable(asked: Sequence[Question], known: frozenset[str]) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """Leave gold ids out that no document has; a question that had only such ids cannot be judged."""
    questions, unusable = [], []
    for question in asked:
        relevant = tuple(gold for gold in question.relevant if gold in known)
        unusable += [
            f"{question.id}: no document has the id {gold!r}" for gold in question.relevant if gold not in known
        ]
        all_known = len(relevant) == len(question.relevant)
        questions.append(question if all_known else replace(question, relevant=relevant, judged=bool(relevant)))
    return tuple(questions), tuple(unusable)


def _unique(
    make: Callable[..., Identified], lines: Iterator[tuple[int, Mapping[str, Json]]], path: Path, mark: Mark
) -> tuple[Identified, ...]:
    first: dict[str, int] = {}
    found = []
    for number, fields in lines:
        value = make(**fields)
        if value.id in first:
            _refuse(path.name, number, f"the id {value.id!r} was used in line {first[value.id]} already", mark)
        first[value.id] = number
        found.append(value)
    return tuple(found)


def _lines(
    path: Path, mark: Mark, fields: Mapping[str, str], required: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Yield the number and the fields, checked, of each line; `mark` is the story that named the file."""
    # Bytes are split, since the line ends that str.splitlines knows are legal inside a JSON text.
    for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1):
        if raw.strip():
            tree = _parse(raw, path.name, number, mark)
            if problem := _problem(tree, fields, required):
                _refuse(path.name, number, problem, mark)
            for name in [name for name, value in tree.items() if type(value) is list]:
                tree[name] = tuple(tree[name])
            yield number, tree


def _parse(raw: bytes, file: str, number: int, mark: Mark) -> Json:
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip(" \t\r")
        tree, end = _DECODER.raw_decode(text)
        return tree if end == len(text) else _DECODER.decode(text)
    except UnicodeDecodeError as error:
        _refuse(file, number, f"byte {error.start + 1} is not UTF-8", mark)
    except RecursionError:
        _refuse(file, number, "the values are nested too deep", mark)
    except ValueError as error:
        _refuse(file, number, f"not a JSON object: {error}", mark)


def _problem(tree: Json, fields: Mapping[str, str], required: Sequence[str]) -> str | None:
    """Return what is wrong with one line, or None."""
    if not isinstance(tree, dict):
        return f"found {_kind(tree)}, allowed is an object with the fields {', '.join(fields)}"
    for name, value in tree.items():
        if fields.get(name) == "text" and type(value) is str:
            continue  # nearly all of them
        if name not in fields:
            near = get_close_matches(name, fields, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return f"unknown field {name!r}. Known: {', '.join(fields)}.{hint}"
        if _kind(value) != fields[name] and not (value == [] and name == "relevant"):
            return f"{name!r} is {_kind(value)}, allowed is {fields[name]}"
    for name in required:
        if name not in tree:
            return f"the field {name!r} is missing"
        if isinstance(tree[name], str) and not tree[name].strip():
            return f"{name!r} is empty"
    gold = tree.get("relevant")
    return "'relevant' names an id twice" if gold and len(set(gold)) < len(gold) else None


def _kind(value: Json) -> str:
    kind = _KINDS.get(type(value), "null")
    return "list of texts" if kind == "list" and value and all(isinstance(inner, str) for inner in value) else kind


def _no_duplicates(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a field is given twice")
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
"""Made once: a corpus has thousands of lines."""


def _refuse(file: str, number: int, problem: str, mark: Mark) -> NoReturn:
    raise StoryError(f"{file}:{number}: {problem}", mark)
