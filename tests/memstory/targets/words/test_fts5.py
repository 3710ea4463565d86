import re
import sqlite3
import unicodedata
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import Refused
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.sqlite_store import having, named, of_kinds, within
from memstory.targets.words.fts5_store import Fts5Store, match_of

ANN, BOB = Scope(user="ann"), Scope(user="bob")
NOW = "2026-01-01T12:00:00+00:00"


@pytest.fixture
def store(tmp_path):
    opened = Fts5Store(tmp_path / "m.sqlite3")
    yield opened
    opened.close()


def add(store, *texts, scope=ANN, **fields):
    return [id_ for id_, _ in store.add([Item(text=text, **fields) for text in texts], scope, NOW)]


def found(store, text, scope=ANN, **asked):
    return [
        hit.text
        for hit in store.search(Query(text=text, **asked), scope, [*within(scope), *of_kinds(asked.get("kinds", ()))])
    ]


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
    store = Fts5Store(":memory:")
    add(store, "plain words")
    assert found(store, text) == (["plain words"] if is_said(text) else [])
    store.close()


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
    add(store, "secret", scope=Scope(user="a.b"))
    assert found(store, "secret", scope=Scope(user="a")) == []
    assert found(store, "secret", scope=Scope(user="b")) == []


def test_a_key_used_again_replaces_text_and_metadata_and_keeps_its_id(store):
    (first,) = add(store, "June", key="deadline", metadata={"draft": True})
    (second,) = add(store, "July", key="deadline")
    assert first == second
    assert [(hit.text, hit.metadata) for hit in store.find(within(ANN))] == [("July", {})]
    assert found(store, "June") == []


def test_an_id_is_never_given_again(store):
    (first,) = add(store, "one")
    store.delete(named(Ref(id=first), "ann"))
    assert add(store, "two") != [first]


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
    assert [hit.text for hit in store.find([*within(ANN), *having(where)])] == texts


def test_metadata_cannot_be_compared_with_a_list():
    with pytest.raises(Refused, match="where: tags is compared with a text, number or boolean"):
        having({"tags": ["a"]})


def test_a_batch_is_stored_whole_or_not_at_all(store):
    with pytest.raises(TypeError):
        add(store, "good", metadata={"bad": object()})
    with pytest.raises(TypeError):
        store.add([Item(text="good"), Item(text="bad", metadata={"x": object()})], ANN, NOW)
    assert store.find(within(ANN)) == []


def test_deleting_all_of_a_user_leaves_the_others(store):
    add(store, "mine", "mine too")
    add(store, "theirs", scope=BOB)
    assert store.delete(within(ANN))
    assert not store.delete(within(ANN))
    assert [hit.text for hit in store.find(within(BOB))] == ["theirs"]
    assert found(store, "mine") == []
