"""What a report is made of."""

from urllib.parse import unquote

import pytest

from memstory.reporting.document import DASH, CaseLink, Table


def test_a_column_in_which_no_row_says_anything_is_not_drawn():
    rows = [["a", "", DASH, "0", ["x"]], ["b", "", DASH, "", DASH]]
    table = Table(["memory", "leak", "R@5", "error", "needs"], rows, numbers=slice(1, None)).without_empty_columns()
    assert list(table.header) == ["memory", "error", "needs"]
    assert [list(row) for row in table.rows] == [["a", "0", ["x"]], ["b", "", DASH]]
    assert list(table.number_columns) == [1, 2]


def test_the_first_column_and_links_stay():
    rows = [["", CaseLink(text="", story="S5", target="a")]]
    assert len(Table(["memory", "first failure"], rows).without_empty_columns().header) == 2


def test_a_row_of_another_length_than_the_header_is_refused():
    with pytest.raises(ValueError, match="a row of 1 cells under a header of 2"):
        Table(["memory", "leak"], [["a"]])


def test_a_link_opens_a_case_by_its_name_as_the_page_writes_it():
    link = CaseLink(text="", story="S5[a\u202eb]", target="half\ud800")
    assert unquote(link.fragment) == r"#case=S5[a\u202eb]@half\ud800"
