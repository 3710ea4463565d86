import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.fences import blocks, prose

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
