"""What methods return, read as hits and ids."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import NamedTuple
from uuid import UUID

import pytest

from memstory.contract.errors import TargetError
from memstory.contract.target import Hit
from memstory.targets.objects.results import found_in, ids_in, one_in, truth_of


class Row(NamedTuple):
    id: int
    text: str


@dataclass
class Note:
    memory_id: int
    content: str
    similarity: float


def rows():
    with sqlite3.connect(":memory:") as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("SELECT 7 AS id, 'tea' AS text").fetchall()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("value", "hit"),
    [
        (["tea"], Hit(id=None, text="tea")),
        ("tea", Hit(id=None, text="tea")),
        ([{"id": 7, "memory": "tea", "score": 0.5}], Hit(id="7", text="tea", score=0.5)),
        ({"results": [{"_id": "m1", "content": "tea"}]}, Hit(id="m1", text="tea")),
        ({"m1": "tea"}, Hit(id="m1", text="tea")),
        ([{"text": "tea", "distance": 0.25}], Hit(id=None, text="tea", score=-0.25)),
        ([{"text": "tea", "metadata": '{"page": 7}'}], Hit(id=None, text="tea", metadata={"page": 7})),
        ([Note(7, "tea", 0.5)], Hit(id="7", text="tea", score=0.5)),
        ([Row(7, "tea")], Hit(id="7", text="tea")),
        (rows(), Hit(id="7", text="tea")),
        ([("tea", 0.5)], Hit(id=None, text="tea", score=0.5)),
        ([(0.5, "tea")], Hit(id=None, text="tea", score=0.5)),
        ([(7, "tea")], Hit(id="7", text="tea")),
        ([("green tea", "m1")], Hit(id="m1", text="green tea")),
        ([("m1", "tea", 0.5)], Hit(id="m1", text="tea", score=0.5)),
        ([("m1", "tea", {"page": 7})], Hit(id="m1", text="tea", metadata={"page": 7})),
        ([(SimpleNamespace(page_content="tea", metadata={"a": 1}), 0.5)],
         Hit(id=None, text="tea", score=0.5, metadata={"a": 1})),
        ([{"id": "m1", "payload": {"text": "tea"}, "score": 1}], Hit(id="m1", text="tea", score=1.0)),
        (([{"key": "m1", "content": "tea"}], "keyword"), Hit(id="m1", text="tea")),
        ((one for one in ["tea"]), Hit(id=None, text="tea")),
        ([{"text": "tea", "created": datetime(2026, 1, 2, tzinfo=UTC)}],
         Hit(id=None, text="tea", created_at="2026-01-02T00:00:00+00:00")),
    ],
)  # fmt: skip
def test_a_hit_is_read_in_many_forms(value, hit):
    assert [found.hit for found in found_in(value, "Memory.search")] == [hit]


@pytest.mark.parametrize("value", [None, [], "", {}, {"results": []}, ([], "keyword"), iter(())])
def test_nothing_is_no_hit(value):
    assert list(found_in(value, "Memory.search")) == []


@pytest.mark.parametrize("value", [3, [3], [{"colour": "green"}], [(1, "ann", "tea", "2026")], [object()]])
def test_what_has_no_text_is_an_error_that_names_the_method(value):
    with pytest.raises(TargetError, match=r"^Memory\.search returned "):
        found_in(value, "Memory.search")


def test_a_hit_without_a_text_is_shown_by_what_it_has():
    class Row:
        def __init__(self):
            self.content_text = "a"

    with pytest.raises(TargetError, match=r"returned Row with content_text: no text"):
        found_in([Row()], "search")


def test_one_row_of_a_database_is_one_memory():
    assert one_in((7, "tea"), "Memory.get").hit == Hit(id="7", text="tea")


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ("m1", ["m1"]),
        (7, [7]),
        (UUID(int=1), [UUID(int=1)]),
        ({"id": "m1"}, ["m1"]),
        ({"results": [{"id": "a", "memory": "x"}, {"id": "b"}]}, ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        ({"ids": ["a"]}, ["a"]),
        (SimpleNamespace(uuid="u"), ["u"]),
        (None, []),
        (True, []),
        ("Saved.", ["Saved."]),
        ("It is saved.", []),
        ("ok", []),
        ({"status": "ok"}, []),
    ],
)
def test_ids_are_read_in_many_forms(value, ids):
    assert ids_in(value) == ids


def test_a_deletion_that_returns_nothing_has_deleted():
    assert [truth_of(value) for value in (None, True, 1, {"message": "deleted"}, False, 0)] == [True] * 4 + [False] * 2
