import doctest
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memstory.reporting import document, markdown
from memstory.reporting.document import TEXT_LIMIT, Table, shorten, visible
from memstory.reporting.markdown import as_markdown, code_block, inline

ATTACKS = [
    "a | b | c",
    "one\ntwo\r\nthree\u2028four",
    "`code` ``` `` fence",
    "<script>alert(1)</script> <img src=x onerror=y> </details> <!-- -->",
    "[click](javascript:alert(1)) ![i](http://x/y.png) [a]: http://b",
    "https://evil.example www.evil.example someone@evil.example",
    "*bold* __bold__ ~~gone~~ snake_case _it_",
    "# heading",
    "- item",
    "1. item",
    "\\| \\` \\\\",
    "&lt;b&gt; &#124; &amp;",
    "\x1b[31mred\x07\x00 \u202egnp.exe \ud800 \u200b",
    "$x$ $$y$$ @team",
    "---",
]
TEXTS = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(alphabet=st.sampled_from("|`\\<>&[]()!*_~#-+=:/.w1 \n\r\t\x0b\u2028\x1b\u202e\"'@$ax")),
    st.text(alphabet=st.characters(codec=None)),
)
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HARMLESS = {"text", "text_special", "softbreak"}


def tokens(markdown):
    for token in READER.parse(markdown):
        yield token
        yield from token.children or ()


def test_doctests_hold():
    assert doctest.testmod(document).failed == doctest.testmod(markdown).failed == 0


@given(rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4))
@example(rows=[tuple(ATTACKS[:3])])
def test_a_row_of_untrusted_cells_stays_one_row_with_its_cells(rows):
    markdown = as_markdown([Table(["a", "b", "c"], rows)])
    assert len(markdown.strip("\n").split("\n")) == len(rows) + 2
    read = [token.type for token in tokens(markdown)]
    assert read.count("tr_open") == len(rows) + 1
    assert read.count("td_open") == 3 * len(rows)
    assert {token for token in read if not re.fullmatch(r"(table|thead|tbody|tr|th|td)_\w+|inline", token)} <= HARMLESS


@given(text=TEXTS)
def test_a_line_reads_as_it_was_written_and_is_nothing_else(text):
    markdown = inline(text)
    assert "\n" not in markdown
    assert "://" not in markdown
    assert not re.search(r"www\.", markdown, re.IGNORECASE)
    read = list(tokens(f"- {markdown}"))
    shown = "".join(token.content for token in read if token.type in {"text", "text_special"})
    assert shown == visible(" ".join(text.split())) or len(text) > TEXT_LIMIT
    blocks = {"inline"} | {
        f"{block}_{end}" for block in ("bullet_list", "list_item", "paragraph") for end in ("open", "close")
    }
    assert {token.type for token in read} <= HARMLESS | blocks


@given(text=TEXTS)
def test_a_fence_ends_only_where_it_is_meant_to(text):
    fence, *rest = READER.parse(f"{code_block(text, 4000)}\n\nafter")
    assert (fence.type, fence.content) == ("fence", visible(text) + "\n")
    assert [token.content for token in rest] == ["", "after", ""]


@given(text=TEXTS)
def test_nothing_invisible_and_nothing_that_utf8_cannot_say_is_left(text):
    shown = visible(text)
    assert shown.encode().decode() == shown
    assert all(character.isprintable() or character.isspace() or character in "\u200c\u200d" for character in shown)


def test_a_long_text_is_cut_and_says_how_much_is_missing():
    assert shorten("x" * 1000, 10) == "xxxxxxxxxx… (+990 characters)"
    assert len(inline("y" * 10**6)) < 400


def test_names_with_underscores_stay_readable():
    assert inline("user.language_preference") == "user.language_preference"


def test_a_row_with_a_cell_too_few_is_refused():
    with pytest.raises(ValueError, match="2 cells"):
        Table(["a", "b", "c"], [["1", "2"]])
