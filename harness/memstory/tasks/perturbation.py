"""What makes a retrieval task harder, and by how much: distractors, outdated versions, paraphrases, another order.

A story's `perturb:` becomes levels. The plain task always comes first, so that every score has one to be compared with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Final

from memstory.contract.target import Tree
from memstory.tasks.retrieval import Collection, Document, Question

AT_REST: Final[Mapping[str, Tree]] = {"distractors": 0, "stale_repeats": 0, "paraphrase": False, "shuffle": False}
"""The perturbations, each with the value that changes nothing."""

_OF_DOCUMENTS: Final = ("distractors", "stale_repeats", "shuffle")
"""Those that need all documents at once; without them a large corpus is never whole in memory."""

PUBLISHED: Final = "as published"

_LEADS: Final = ("Noted a while ago and changed since: ", "It used to be so, no longer: ", "As it was at first: ")
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedCollection:
    """A collection as it is to be remembered; `outdated` maps a document's id to its earlier texts, oldest first."""

    collection: Collection
    outdated: Mapping[str, Sequence[str]]


def levels_of(perturb: Mapping[str, Tree]) -> tuple[Mapping[str, Tree], ...]:
    """Return every combination of levels, the plain one first; a story without perturbations has one empty level.

    >>> levels_of({"distractors": [200, 1000], "seed": 7})
    ({'distractors': 0}, {'distractors': 200}, {'distractors': 1000})
    """
    asked = {name: perturb[name] for name in AT_REST if name in perturb and perturb[name] is not False}
    plain = {name: AT_REST[name] for name in asked}
    choices = [value if isinstance(value, list) else [value] for value in asked.values()]
    found = [plain, *(dict(zip(asked, values, strict=True)) for values in product(*choices))]
    return tuple(level for place, level in enumerate(found) if level not in found[:place])


def with_labels(levels: Sequence[Mapping[str, Tree]], labels: str | None) -> tuple[Mapping[str, Tree], ...]:
    """Return the levels at which scores are taken: where labels were examined, each by both kinds of labels.

    >>> with_labels([{}], "audited")
    ({'labels': 'as published'}, {'labels': 'audited'})
    """
    if labels is None:
        return tuple(levels)
    return tuple({**level, "labels": kind} for level in levels for kind in (PUBLISHED, labels))


def level_name(level: Mapping[str, Tree]) -> str:
    """Return a level in words; empty for a task that is never perturbed.

    >>> level_name({"distractors": 200, "paraphrase": True}), level_name({"distractors": 0})
    ('distractors 200, paraphrase', 'plain')
    """
    said = [name if value is True else f"{name} {value}" for name, value in sorted(level.items()) if value]
    return ", ".join(said) or ("plain" if level else "")


def perturb_collection(
    collection: Collection, level: Mapping[str, Tree], pool: Sequence[Document], seed: str
) -> PerturbedCollection:
    """Return `collection` at `level`; the same seed gives the same, and a higher level holds all of a lower one.

    Raises:
        ValueError: there are too few distractors, or nothing to paraphrase; the message is for the story's author.
    """
    questions = _paraphrase(collection.questions) if level.get("paraphrase") else collection.questions
    if not any(level.get(name) for name in _OF_DOCUMENTS):
        return PerturbedCollection(collection=replace(collection, questions=questions), outdated={})
    documents = list(collection.documents)
    if level.get("shuffle"):
        Random(f"{seed}/shuffle").shuffle(documents)  # noqa: S311  (chance that can be repeated, not a secret)
    versions = int(level.get("stale_repeats", 0))
    outdated = {document.id: outdated_texts(document, versions) for document in documents if versions}
    extra = _distractors(documents, pool, int(level.get("distractors", 0)), seed)
    mixed = _mix(documents, extra, Random(f"{seed}/places"))  # noqa: S311  (as above)
    return PerturbedCollection(collection=replace(collection, documents=mixed, questions=questions), outdated=outdated)


def outdated_texts(document: Document, count: int) -> tuple[str, ...]:
    """Return `count` earlier texts of a document, oldest first: those that it lists, and before them made-up ones.

    >>> outdated_texts(Document(id="a", text="Lunch is at 12."), 2)
    ('Lunch is at 14.', 'Lunch is at 13.')
    """
    listed = tuple(document.outdated[-count:]) if count else ()
    return (*(_earlier(document.text, age) for age in range(count, len(listed), -1)), *listed)


def _earlier(text: str, age: int) -> str:
    """Return how a text may have read `age` versions ago: its numbers differ, or it says that it no longer holds."""
    if _NUMBER.search(text):
        return _NUMBER.sub(lambda found: str(int(found[0]) + age), text)
    return f"{_LEADS[(age - 1) % len(_LEADS)]}{text}" + (f" ({age})" if age > len(_LEADS) else "")


def _distractors(documents: Sequence[Document], pool: Sequence[Document], count: int, seed: str) -> list[Document]:
    if not count:
        return []
    taken = {document.text for document in documents} | {document.id for document in documents}
    usable = [one for one in pool if one.text not in taken and one.id not in taken]
    if count > len(usable):
        raise ValueError(f"{count} distractors are asked for, but there are {len(usable)}; lower 'distractors'")
    # One order for all levels: a memory that passed with 200 of them then gets 800 more.
    Random(f"{seed}/distractors").shuffle(usable)  # noqa: S311  (chance that can be repeated, not a secret)
    return usable[:count]


def _mix(documents: Sequence[Document], extra: Sequence[Document], draw: Random) -> tuple[Document, ...]:
    """Put `extra` between the documents, whose own order may say which is older."""
    places = set(draw.sample(range(len(documents) + len(extra)), len(extra)))
    own, other = iter(documents), iter(extra)
    return tuple(next(other if place in places else own) for place in range(len(documents) + len(extra)))


def _paraphrase(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Ask each variant as a separate question, in place of the query; a question without variants stays as it is."""
    if not any(question.variants for question in questions):
        raise ValueError("'paraphrase' asks the 'variants' that queries list, but no query lists any")
    return tuple(asked for question in questions for asked in _variants(question))


def _variants(question: Question) -> Sequence[Question]:
    return [
        replace(question, id=f"{question.id}~{number}", text=text, variants=())
        for number, text in enumerate(question.variants, start=1)
    ] or [question]
