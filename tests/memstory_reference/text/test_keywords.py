import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstory_reference.text.keywords import MAX_KEYWORDS, extract_keywords, fts_query, matched, segmented


def words(text):
    return [keyword.text for keyword in extract_keywords(text)]


def test_stop_words_and_repeats_are_left_out():
    assert words("What is the cost of the cost model?") == ["cost", "model"]


@pytest.mark.parametrize("name", ["glm4:9b", "all-MiniLM-L6-v2", "gpt-4.1", "snake_case", "FastAPI"])
def test_technical_names_stay_whole_and_count_as_specific(name):
    (keyword,) = extract_keywords(name)
    assert (keyword.text, keyword.specific) == (name.lower(), True)


def test_plain_words_are_not_specific():
    assert [keyword.specific for keyword in extract_keywords("Tune small models")] == [False, False, False]


def test_no_more_than_the_limit_is_kept():
    assert len(words(" ".join(f"word{number}" for number in range(100)))) == MAX_KEYWORDS


def test_ideographs_are_found_inside_a_longer_run():
    assert [keyword.text for keyword in matched(extract_keywords("猫"), "我喜欢猫咪")] == ["猫"]


def test_a_keyword_is_not_found_inside_a_longer_word():
    assert matched(extract_keywords("cat"), "concatenate") == ()


BODY = "plain context words id:x 我喜欢猫"
SYNTAX = [
    "plain",
    "con*",
    "pla",
    "id:x",
    "other:8",
    "NEAR(a b)",
    "c++",
    "NOT",
    "a OR",
    "^x",
    "{body}: x",
    '"',
    "-",
    "_",
]


@pytest.fixture(scope="module")
def index():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE words USING fts5(body, other)")
    database.execute("INSERT INTO words VALUES (?, ?)", (segmented(BODY), "8.7"))
    yield database
    database.close()


@settings(max_examples=400, deadline=None)
@given(st.text() | st.lists(st.sampled_from(SYNTAX), max_size=8).map(" ".join))
def test_no_text_breaks_or_bends_a_full_text_query(index, text):
    keywords = extract_keywords(text)
    query = f"body : ({fts_query(keywords)})"
    found = keywords and index.execute("SELECT * FROM words WHERE words MATCH ?", (query,)).fetchall()
    assert len(found) == bool(matched(keywords, BODY))


def test_a_column_name_in_the_text_is_only_a_word(index):
    query = fts_query(extract_keywords("other:8.7"))
    assert index.execute("SELECT count(*) FROM words WHERE words MATCH ?", (f"body : ({query})",)).fetchone() == (0,)
