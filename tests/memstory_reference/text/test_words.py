"""Tokens of every script, and what is compared by them (C-07, C-08, C-17)."""

import sqlite3
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memstory_reference.text.words import (
    MAX_KEYWORDS,
    count_tokens,
    extract_keywords,
    fold,
    fts_query,
    index_text,
    is_about,
    jaccard,
    letters_for_digits,
    matching_keywords,
    plain_words,
    squeeze,
    token_list,
    token_recall,
    token_set,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s\u0430f\u0435ty", "safety"),
        ("\u03a1\u0430ssword", "Password"),
        ("\uff50\uff41\uff53\uff53", "pass"),
        ("\U0001d429\U0001d41a\U0001d42c\U0001d42c", "pass"),
        ("p\u200ba\u00adss", "pass"),
        ("\uff14\u0661\u06f1", "411"),
        ("café ñ", "cafe n"),
        ("Straße 10", "Straße 10"),
    ],
)
def test_letters_that_look_alike_are_one(text, expected):
    assert fold(text) == expected


@given(st.text())
def test_folding_twice_changes_nothing_more(text):
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_letters_for_digits_keep_every_place(text):
    assert len(letters_for_digits(text)) == len(text)


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


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("My landlord is called Marek.", "my landlord"),
        ("I have a sister in Vilnius.", "a sister"),
        ("The old cars were red.", "old car"),
        ("My daughter Rita is allergic to peanuts.", "Rita's allergy"),
        ("The record of AB-1234-XY is open.", "ab-1234-xy"),
        ("The record of 550e8400-e29b-41d4-a716-446655440000.", "550e8400e29b41d4a716446655440000"),
        ("The record of François has a remark.", "Francois"),
    ],
)
def test_a_text_is_about_what_has_all_its_words_in_any_spelling(text, thing):
    assert is_about(text, ["something else", thing])


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("The office key is on the ring.", "garden shed key"),
        ("Ticket 123456 is open.", "12345"),
        ("Write to alice@acme.io.example today.", "alice@acme.io"),
        ("The invoice 2026-0411 is paid.", "2026-0417"),
        ("Anything at all.", "the"),
        ("Anything at all.", "the my"),
        ("Anything at all.", "---"),
    ],
)
def test_a_text_is_not_about_what_is_only_near(text, thing):
    assert not is_about(text, [thing])


def test_a_squeezed_identifier_has_neither_case_nor_signs():
    assert squeeze("“Ab-12.c_”") == "ab12c"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("我喜欢猫", {"我", "喜", "欢", "猫"}),
        ("我用Python", {"我", "用", "python"}),
        ("ひらがなカナ", set("ひらがなカナ")),
        ("Привет, мир!", {"привет", "мир"}),
        ("고양이를 좋아해", {"고양이를", "좋아해"}),
        ("cafe\u0301", {"café"}),
        ("\uff26\uff35\uff2c\uff2c\u3000width", {"full", "width"}),
        ("STRASSE straße", {"strasse"}),
        ("don't don’t", {"don't"}),
        ("snake_case", {"snake", "case"}),
        ("हिन्दी", {"हिन्दी"}),
        ("'quoted'", {"quoted"}),
        ("…—!", set()),
    ],
)
def test_tokens(text, tokens):
    assert token_set(text) == tokens


@given(st.text())
def test_case_width_and_composition_make_no_difference(text):
    tokens = token_list(text)
    assert token_list(unicodedata.normalize("NFC", text)) == token_list(unicodedata.normalize("NFD", text))
    assert all(tokens)
    assert not any(unicodedata.combining(token[0]) for token in tokens)


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1))
def test_a_text_of_letters_is_never_empty(text):
    assert token_set(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_an_ascii_text_has_the_tokens_that_it_has_beside_a_word_of_other_letters(text):
    assert token_list(text) == token_list(f"é {text}")[1:]


SETS = st.frozensets(st.sampled_from("abcdef"))


@given(SETS, SETS)
def test_both_measures_lie_between_0_and_1(left, right):
    assert 0 <= jaccard(left, right) == jaccard(right, left) <= 1
    assert 0 <= token_recall(left, right) <= 1


def test_token_recall_by_the_worked_number():
    assert token_recall({"boss", "work", "stress"}, {"my", "boss", "is", "terrible", "work"}) == pytest.approx(2 / 3)
    assert token_recall(set(), {"a"}) == 0


def test_words_marks_and_ideographs_are_tokens():
    assert [count_tokens(text) for text in ("", " \n", "one two", "it's 3.5!", "我用Python", "ฉันรัก")] == [
        0,
        0,
        2,
        7,
        3,
        2,
    ]


def test_a_run_without_spaces_cannot_pass_a_budget():
    assert count_tokens("a" * 16) == 1
    assert count_tokens("a" * 16_000) == 1_000


@given(st.text(), st.text())
def test_two_texts_apart_are_as_much_as_both(left, right):
    assert count_tokens(f"{left} {right}") == count_tokens(left) + count_tokens(right)


@given(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1))
def test_a_text_that_shows_something_has_a_token(text):
    assert count_tokens(text) >= 1
