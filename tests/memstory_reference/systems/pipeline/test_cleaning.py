import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.pipeline.reading import clean

TEXTS = st.lists(st.sampled_from(["```", "", " ", "a", "e\u0301", "**b**", "\r", "    x"])).map("\n".join) | st.text()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  e\u0301\n\n\n\n**b**  ", "\u00e9\n\n**b**"),
        ("\ufb01", "\ufb01"),
        ("a\nb", "a\nb"),
        ("a\r\n\r\n\r\nb", "a\n\nb"),
        ("a\n \t\n\nb", "a\n\nb"),
        ("# T\n- one\n    - two", "# T\n- one\n    - two"),
        ("x\n\n\n```\na\n\n\n\nb\n```\n\n\n\ny", "x\n\n```\na\n\n\n\nb\n```\n\ny"),
        ("```\ne\u0301\n```", "```\ne\u0301\n```"),
        ("a\ud800b\x00c", "a\ufffdb\ufffdc"),
        (" \n\t", ""),
    ],
)
def test_only_what_is_needless_goes(text, cleaned):
    assert clean(text) == cleaned


@given(TEXTS)
def test_a_cleaned_text_is_writable_and_has_no_ends(text):
    cleaned = clean(text)
    assert cleaned == cleaned.strip()
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned


@given(st.text(st.characters(exclude_characters="`~\u1fef")))
def test_cleaning_twice_is_cleaning_once(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert unicodedata.is_normalized("NFC", cleaned)
    assert "\n\n\n" not in cleaned
