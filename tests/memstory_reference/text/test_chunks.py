import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.chunks import blocks, prose, split_chunks
from memstory_reference.text.words import count_tokens

PIECES = st.sampled_from(
    [
        "word",
        "Word",
        ". ",
        "? ",
        "\n",
        "\n\n",
        "```\n",
        "\n```\n",
        "語",
        "ก",
        " ",
        ",",
        "supercalifragilistic",
        "é",
        "🎉",
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=80)


def paragraph(tokens):
    return " ".join(["word"] * tokens)


def sentence(tokens):
    return " ".join(["Word", *["word"] * (tokens - 2)]) + "."


def sizes(*tokens):
    return [count_tokens(chunk) for chunk in split_chunks("\n\n".join(map(paragraph, tokens)))]


def solid(text):
    return "".join(text.split())


@pytest.mark.parametrize(
    ("paragraphs", "chunks"),
    [
        ([40, 200], [240]),
        ([200, 40], [240]),
        ([40, 40, 40], [120]),
        ([300], [300]),
        ([40, 290], [40, 290]),
        ([290, 40], [290, 40]),
        ([290, 40, 290], [290, 40, 290]),
        ([20], [20]),
        ([], []),
        ([50, 50], [50, 50]),
        ([49, 251], [300]),
        ([49, 252], [49, 252]),
    ],
)
def test_short_paragraphs_join_a_neighbour_where_both_fit(paragraphs, chunks):
    assert sizes(*paragraphs) == chunks


def test_a_long_paragraph_is_cut_at_sentences_and_these_join_again():
    chunks = split_chunks(" ".join([sentence(43)] * 7))
    assert [count_tokens(chunk) for chunk in chunks] == [86, 86, 129]
    assert all(chunk.startswith("Word") for chunk in chunks)
    assert all(chunk.endswith(".") for chunk in chunks)


def test_paragraphs_are_joined_by_a_blank_line_and_sentences_by_a_space():
    assert split_chunks("a b\n\nc d", max_tokens=9, min_tokens=3) == ["a b\n\nc d"]
    assert split_chunks("One. Two.  Three.", max_tokens=4, min_tokens=3) == ["One. Two.", "Three."]


def test_a_separator_counts():
    assert split_chunks("ab\n\ncd", max_tokens=5, min_tokens=3, count=len) == ["ab", "cd"]
    assert split_chunks("ab\n\ncd", max_tokens=6, min_tokens=3, count=len) == ["ab\n\ncd"]


def test_a_sentence_that_is_too_long_is_cut_at_clauses_then_words_then_letters():
    assert split_chunks("one two, three four", max_tokens=3, min_tokens=1) == ["one two,", "three four"]
    assert split_chunks("one two three four", max_tokens=3, min_tokens=1) == ["one two three", "four"]
    assert split_chunks("語" * 7, max_tokens=3, min_tokens=1) == ["語語語", "語語語", "語"]
    assert split_chunks("x" * 40, max_tokens=2, min_tokens=1) == ["x" * 32, "x" * 8]


def test_a_fence_is_never_cut_at_its_blank_lines():
    code = "```py\na = 1\n\n\nb = 2\n```"
    assert split_chunks(f"before\n\n{code}\n\nafter", min_tokens=1) == ["before", code, "after"]
    assert split_chunks(f"See:\n{code}\nDone.", min_tokens=1) == [f"See:\n{code}\nDone."]


def test_a_fence_that_is_too_long_is_cut_at_line_ends():
    code = "```\n" + "\n".join(f"line{number} = 1" for number in range(9)) + "\n```"
    chunks = split_chunks(code, max_tokens=10, min_tokens=1)
    assert "\n".join(chunks) == code
    assert max(map(count_tokens, chunks)) <= 10


@given(TEXTS, st.integers(1, 12), st.integers(0, 12))
def test_no_chunk_is_too_long_and_no_letter_is_lost(text, most, least):
    chunks = split_chunks(text, max_tokens=most, min_tokens=min(least, most))
    # One letter with its marks may be more tokens than a bound this small.
    assert all(count_tokens(chunk) <= max(most, 8) for chunk in chunks)
    assert solid("".join(chunks)) == solid(text)
    assert all(chunk.strip() for chunk in chunks)


@given(TEXTS)
def test_a_text_that_fits_is_one_chunk_per_paragraph_at_most(text):
    assert len(split_chunks(text, max_tokens=1_000, min_tokens=1_000)) <= 1


MARKDOWN = st.lists(st.sampled_from(["```", "~~~", "````", "```py", "    ```", "text", "", "a ``` b"])).map("\n".join)


@given(st.text() | MARKDOWN)
def test_the_blocks_join_to_the_text(text):
    assert "".join(block.text for block in blocks(text)) == text


@pytest.mark.parametrize(
    ("text", "fences"),
    [
        ("```\na\n\nb\n```", ["```\na\n\nb\n```"]),
        ("~~~\n```\n~~~\nx", ["~~~\n```\n~~~\n"]),
        ("````\n```\n````", ["````\n```\n````"]),
        ("a\n```\nnever closed\n\nb", ["```\nnever closed\n\nb"]),
        ("    ```\nindented, no fence", []),
        ("``` a `b` ```\ninline, no fence", []),
    ],
)
def test_fences_are_told_as_markdown_has_them(text, fences):
    assert [block.text for block in blocks(text) if block.is_fence] == fences


def test_prose_is_what_is_outside_of_fences():
    assert prose("a\n```\nb\n```\nc") == "a\nc"
