"""The corpus lifelines as its tests read it: each circle with its words and stems, read once."""

import importlib.util
import json
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from functools import cache, cached_property
from math import log
from pathlib import Path
from statistics import fmean

import pytest
import snowballstemmer

FOLDER = Path(__file__).parents[2] / "stories" / "corpora" / "lifelines"

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ENDINGS = {"s", "ll", "ve", "re", "d", "m"}
_STEMMER = snowballstemmer.stemmer("english")

_COMMON, _EMPTY = (Path(__file__).parent / "stop_words.txt").read_text("utf-8").split("\n\n")
LUCENE = frozenset(_COMMON.split())
"""What a search by words leaves out."""

STOP = LUCENE | frozenset(_EMPTY.split())
"""What a question and a turn may share without sharing content."""


@cache
def words(text):
    """Return the words of a text: lower case, no accents, without apostrophes and their endings."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return tuple(_bare(word) for word in _WORD.findall(re.sub(r"(?<=\d)[.,:](?=\d)", "", plain)))


def _bare(word):
    first, *rest = re.split("['’]", word)
    if not rest:
        return word
    if rest[-1] == "t" and first.endswith("n"):
        return {"ca": "can", "wo": "will", "sha": "shall"}.get(first[:-1], first[:-1])
    # l', d', qu', o' stand before a word.
    return first if rest[-1] in _ENDINGS or len(first) > 2 else rest[0]


@cache
def stem(word):
    return _STEMMER.stemWord(word)


def _terms(text):
    return [stem(word) for word in words(text) if word not in LUCENE]


class Circle:
    """One circle: three people, their turns, and what is asked about them."""

    def __init__(self, number, names, ledger, turns, questions):
        self.number, self.names = number, names
        self.ledger = [fact for fact in ledger if fact["circle"] == number]
        self.turns = {turn["id"]: turn for turn in turns if turn["metadata"]["circle"] == number}
        self.questions = [question for question in questions if question["metadata"]["circle"] == number]

    @cached_property
    def answerable(self):
        return [question for question in self.questions if question["relevant"]]

    @cached_property
    def said(self):
        """The text of each turn, without its date and speaker."""
        return {id_: turn["text"].partition(": ")[2] for id_, turn in self.turns.items()}

    @cached_property
    def by_question(self):
        """The wordings of each question."""
        found = defaultdict(list)
        for question in self.questions:
            found[question["id"].rpartition(".")[0]].append(question)
        return found

    def stems(self, text):
        """Return the stems that carry content; names of people do not."""
        return {stem(word) for word in words(text) if word not in STOP and word not in self.names and len(word) > 1}

    def by_words(self, text):
        """Return the ids of the turns that share a stem with a text, best first, by BM25 as Lucene has it."""
        weight, holders = self._statistics
        scores = Counter()
        for term in _terms(text):
            for id_, part in holders.get(term, {}).items():
                scores[id_] += weight[term] * part
        return [id_ for id_, _ in scores.most_common()]

    @cached_property
    def _statistics(self):
        counts = {id_: Counter(_terms(turn["text"])) for id_, turn in self.turns.items()}
        mean = fmean(count.total() for count in counts.values())
        holders = defaultdict(dict)
        for id_, count in counts.items():
            norm = 1.5 * (0.25 + 0.75 * count.total() / mean)
            for term, times in count.items():
                holders[term][id_] = times / (times + norm)
        return {
            term: log(1 + (len(counts) - len(ids) + 0.5) / (len(ids) + 0.5)) for term, ids in holders.items()
        }, holders

    def holders(self, change=lambda word: word):
        """Return the turns in which each word occurs, speakers included."""
        found = defaultdict(set)
        for id_, turn in self.turns.items():
            for word in words(f"{turn['metadata']['speaker']} {self.said[id_]}"):
                found[change(word)].add(id_)
        return found


class Lifelines:
    """The whole corpus, and what its tests measure texts with."""

    words, stem, stop, lucene = staticmethod(words), staticmethod(stem), STOP, LUCENE

    def __init__(self):
        self.folder = FOLDER
        self.ledger, self.turns, self.questions, self.answers = map(
            self.rows, ("ledger", "turns", "questions", "answers")
        )
        names = frozenset((FOLDER / "names.txt").read_text("utf-8").split())
        self.circles = [Circle(number, names, self.ledger, self.turns, self.questions) for number in (1, 2)]

    def rows(self, name):
        return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]

    @cached_property
    def gold(self):
        """The script that computes gold."""
        spec = importlib.util.spec_from_file_location("lifelines_gold", FOLDER / "gold.py")
        script = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = script  # where dataclasses look for it
        spec.loader.exec_module(script)
        return script


@pytest.fixture(scope="session")
def lifelines():
    return Lifelines()


@pytest.fixture(params=[1, 2], ids=["open", "closed"], scope="session")
def circle(request, lifelines):
    return lifelines.circles[request.param - 1]
