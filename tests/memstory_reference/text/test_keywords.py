import sqlite3
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memstory_reference.text.keywords import (
    MAX_KEYWORDS,
    extract_keywords,
    fts_query,
    index_text,
    matching_keywords,
    plain_words,
)


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
    assert [keyword.text for keyword in matching_keywords(extract_keywords("猫"), "我喜欢猫咪")] == ["猫"]


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_an_ascii_text_has_the_words_that_it_has_beside_a_word_of_other_letters(text):
    assert plain_words(text) == plain_words(f"é {text}")[1:]


def test_accents_make_no_difference_and_no_second_word():
    assert words("Café cafe CAFÉ") == ["café"]
    assert matching_keywords(extract_keywords("café"), "the Cafe")
    assert matching_keywords(extract_keywords("cafe"), "the cafe\u0301")


def test_a_keyword_is_not_found_inside_a_longer_word():
    assert matching_keywords(extract_keywords("cat"), "concatenate") == ()


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
    database.execute("CREATE VIRTUAL TABLE words USING fts5(body, other, tokenize = 'ascii')")
    database.execute("INSERT INTO words VALUES (?, ?)", (index_text(BODY), "8.7"))
    yield database
    database.close()


# Signs near a word of BODY: a tokenizer, a case or a normal form may make a letter of it of one, or a space.
NEAR = [*"\u0300\u200b\u00ad_\u0130\u0131\u017f\u212a\ufb01ß\U0001e922\U000e0041", "\u0323\u0306"]


@st.composite
def near_words(draw):
    """Words of BODY with such signs in them, composed or not, in either case."""
    signs = [sign for word in draw(st.lists(st.sampled_from(BODY.split()), max_size=3)) for sign in (*word, " ")]
    for place, sign in draw(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(NEAR)), max_size=3)):
        signs.insert(place, sign)
    text = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), "".join(signs))
    return text.upper() if draw(st.booleans()) else text


@settings(max_examples=400, deadline=None)
@given(st.text() | st.lists(st.sampled_from(SYNTAX), max_size=8).map(" ".join) | near_words())
@example("ÌD")
@example("\U0001e922id")
def test_no_text_breaks_or_bends_a_full_text_query(index, text):
    keywords = extract_keywords(text)
    query = f"body : ({fts_query(keywords)})"
    found = keywords and index.execute("SELECT * FROM words WHERE words MATCH ?", (query,)).fetchall()
    assert len(found) == bool(matching_keywords(keywords, BODY))


def test_a_column_name_in_the_text_is_only_a_word(index):
    query = fts_query(extract_keywords("other:8.7"))
    assert index.execute("SELECT count(*) FROM words WHERE words MATCH ?", (f"body : ({query})",)).fetchone() == (0,)
