import re
import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import Refused
from memstory.contract.target import Environment
from memstory.targets.rows import Row, RowQuery
from memstory.targets.vendors.sqlite import Fts5Target, match_of

NOW = "2026-01-01T12:00:00+00:00"


class InMemory(Fts5Target):
    def open_file(self, path):
        return sqlite3.connect(":memory:")


def opened_store():
    store = InMemory()
    store.connect(Environment(workspace="unused", owner="ann"))
    return store


@pytest.fixture
def store():
    opened = opened_store()
    yield opened
    opened.disconnect()


def rows(*texts, user="ann", **fields):
    return [
        Row(id=f"{user}:{fields.get('key', text)}", user=user, text=text, created_at=NOW, **fields) for text in texts
    ]


def add(store, *texts, **fields):
    return store.write(rows(*texts, **fields))


def found(store, text, user="ann", count=None, **wanted):
    return [row.text for row, _ in store.rank(RowQuery(user=user, text=text, **wanted), count)]


SYNTAX = [
    "plain",
    "words",
    "wor",
    "*",
    '"',
    "'",
    ":",
    "body:",
    "owner:",
    "NOT",
    "AND",
    "OR",
    "NEAR(",
    ")",
    "^",
    "{",
    "-",
]


def is_said(text):
    """Whether "plain words" has a word of `text`, by SQLite's own reading: it folds case and accents."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(
            "CREATE VIRTUAL TABLE said USING fts5 (word); CREATE VIRTUAL TABLE parts USING fts5vocab (said, instance);"
        )
        asked = dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower()))
        database.executemany("INSERT INTO said VALUES (?)", [[word] for word in list(asked)[:32]])
        phrases = database.execute(
            "SELECT group_concat(term, ' ') FROM (SELECT doc, term FROM parts ORDER BY doc, offset) GROUP BY doc"
        )
        return any(f" {phrase} " in " plain words " for (phrase,) in phrases)


@settings(max_examples=300, deadline=None)
@example("wörds")
@example("_words_")
@example("\U0001e922words")
@given(
    st.lists(st.sampled_from(SYNTAX), max_size=8).map(" ".join)
    | st.lists(st.sampled_from(SYNTAX), max_size=8).map("".join)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)
    | st.text(alphabet="plainwords \u0300\u0323\u00ad_\u0131\u017f\U0001e922", max_size=30)
)
def test_no_text_is_read_as_a_query_language(text):
    store = opened_store()
    add(store, "plain words")
    assert found(store, text) == (["plain words"] if is_said(text) else [])
    store.disconnect()


@pytest.mark.parametrize(
    "text", ["body:words", "run* wor*", "words NOT plain", 'say "words', "owner:x words", "^words"]
)
def test_what_looks_like_an_operator_is_words(store, text):
    add(store, "plain words")
    assert found(store, text) == (["plain words"] if "words" in text.replace("words NOT", "words") else [])


@pytest.mark.parametrize("text", ["", "  ", "?!", "\x00"])
def test_a_query_without_a_word_finds_nothing(store, text):
    add(store, "plain words")
    assert match_of(text, "ann") is None
    assert found(store, text) == []


def test_a_rare_word_ranks_before_a_common_one(store):
    add(store, "tea with milk", "tea with honey", "coffee with milk")
    assert found(store, "honey milk")[0] == "tea with honey"


def test_users_with_like_names_are_apart(store):
    add(store, "secret", user="a.b")
    assert found(store, "secret", user="a") == []
    assert found(store, "secret", user="b") == []


def test_a_row_of_a_known_id_is_replaced_at_its_place(store):
    assert add(store, "June", key="deadline", metadata={"draft": True}) == set()
    add(store, "tea")
    assert add(store, "July", key="deadline") == {"ann:deadline"}
    assert [(row.text, row.metadata) for row in store.find(RowQuery(user="ann"))] == [("July", {}), ("tea", {})]
    assert found(store, "June") == []


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        ({"n": 1}, ["one"]),
        ({"n": True}, ["true"]),
        ({"n": "1"}, ["text"]),
        ({"n": 1, "deep": "x"}, []),
        ({'$."n"': 1}, []),
    ],
)
def test_metadata_is_compared_with_its_type(store, where, texts):
    for text, value in (("one", 1), ("true", True), ("text", "1")):
        add(store, text, metadata={"n": value})
    assert [row.text for row in store.find(RowQuery(user="ann", where=where))] == texts


def test_metadata_cannot_be_compared_with_a_list(store):
    with pytest.raises(Refused, match="where: tags is compared with a text, number or boolean"):
        store.find(RowQuery(user="ann", where={"tags": ["a"]}))


def test_a_batch_is_stored_whole_or_not_at_all(store):
    with pytest.raises(TypeError):
        store.write([*rows("good"), *rows("bad", metadata={"x": object()})])
    assert store.find(RowQuery(user="ann")) == []
    assert found(store, "good") == []


def test_deleting_all_of_a_user_leaves_the_others(store):
    add(store, "mine", "mine too")
    add(store, "theirs", user="bob")
    store.remove(store.find(RowQuery(user="ann")))
    assert store.find(RowQuery(user="ann")) == []
    assert [row.text for row in store.find(RowQuery(user="bob"))] == ["theirs"]
    assert found(store, "mine") == []
