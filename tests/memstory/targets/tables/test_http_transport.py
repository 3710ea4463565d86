"""The pure parts of talking HTTP: paths that lead nowhere else, waits that make sense."""

from __future__ import annotations

from urllib.parse import unquote

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstory.contract.errors import Refused
from memstory.targets.tables.http_transport import path_segment, public_url, retry_seconds

SENDABLE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(SENDABLE)
def test_a_value_stays_one_part_of_the_path_and_can_be_read_back(value):
    url = httpx.URL(f"http://h/users/{path_segment(value)}/notes")
    parts = url.raw_path.decode().split("/")
    assert parts[1::2] == ["users", "notes"]
    assert unquote(parts[2]) == value


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(Refused, match="not valid Unicode"):
        path_segment("\ud800")


@example("0\x1f")
@given(st.text(max_size=30))
def test_whatever_a_server_asks_to_wait_is_no_time_before_now(text):
    wanted = retry_seconds(text)
    assert wanted is None or wanted >= 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://me:pass@h:80/api?key=1#x", "http://h:80/api"),
        ("https://h", "https://h"),
        ("http://user@[::1]:9/a", "http://[::1]:9/a"),
    ],
)
def test_an_address_is_told_without_who_asks(url, told):
    assert public_url(url) == told
