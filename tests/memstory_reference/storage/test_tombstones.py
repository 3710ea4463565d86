import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import InputError
from memstory_reference.storage.tombstones import NoTombstones, Tombstones


@pytest.mark.parametrize(
    "again",
    [
        "The parrot is called Dunya.",
        "THE PARROT  IS CALLED DUNYA",
        "User: The parrot is called Dunya.\nAssistant: Noted.",
        "We talked. The parrot is called Dunya. It rained.",
    ],
)
def test_what_was_forgotten_for_good_is_known_again(again):
    stones = Tombstones()
    stones.bury("ana", ["The parrot is called Dunya."])
    assert stones.reason("ana", again)


@pytest.mark.parametrize("other", ["The parrot is called Tibor.", "Is the parrot called Dunya a grey one?", "Thanks."])
def test_what_is_only_alike_may_be_said(other):
    stones = Tombstones()
    stones.bury("ana", ["The parrot is called Dunya. Thanks."])
    assert stones.reason("ana", other) is None


def test_signs_without_words_keep_only_themselves_away():
    stones = Tombstones()
    stones.bury("ana", ["!!!"])
    assert stones.reason("ana", "!!!")
    assert stones.reason("ana", "---\nThe well is dry.") is None


def test_an_identifier_is_known_again_in_another_text_and_spelling():
    stones = Tombstones()
    stones.bury("ana", ["The badge number is B-77120"])
    assert stones.reason("ana", "Somebody asked for b77120 again.")


@pytest.mark.parametrize("common", ["2026-05-01", "10:30", "100,000", "12.50", "2026"])
def test_dates_times_and_amounts_of_a_forgotten_text_may_be_said(common):
    stones = Tombstones()
    stones.bury("ana", [f"I met Dunya, {common}, at the pier."])
    assert stones.reason("ana", f"The bill of {common} is paid.") is None


def test_another_owner_may_say_it():
    stones = Tombstones()
    stones.bury("ana", ["The well is dry."])
    stones.refuse("ben", "The well is dry.")
    with pytest.raises(InputError, match="forgotten for good"):
        stones.refuse("ana", "The well is dry.")


def test_it_is_known_after_a_restart_and_the_file_does_not_hold_it(tmp_path):
    file = tmp_path / "forgotten.sqlite3"
    stones = Tombstones(file)
    assert not file.exists()
    stones.bury("ana", ["The donor is called Castellan."])
    stones.close()
    again = Tombstones(file)
    assert again.reason("ana", "The donor is called Castellan.")
    assert again.reason("ben", "The donor is called Castellan.") is None
    again.close()
    assert b"castellan" not in b"".join(one.read_bytes() for one in tmp_path.iterdir()).lower()


def test_two_stores_do_not_share_a_digest(tmp_path):
    files = [tmp_path / name / "forgotten.sqlite3" for name in ("one", "two")]
    for file in files:
        stones = Tombstones(file)
        stones.bury("ana", ["The well is dry."])
        assert stones.reason("ana", "The well is dry.")
    marks = [Tombstones(file)._marks["ana"] for file in files]
    assert marks[0].isdisjoint(marks[1])


def test_a_memory_in_a_server_refuses_to_forget_for_good():
    with pytest.raises(InputError, match="has no folder"):
        NoTombstones().bury("ana", ["The well is dry."])


@given(st.text())
def test_any_text_that_was_buried_is_known_again(text):
    stones = Tombstones()
    stones.bury("ana", [text])
    assert stones.reason("ana", text)


@pytest.mark.parametrize("damage", ["DELETE FROM salt", "UPDATE salt SET value = x'00'", "UPDATE salt SET value = 'x'"])
def test_a_file_that_would_not_know_again_what_was_forgotten_is_one_clear_error(tmp_path, damage):
    stones = Tombstones(tmp_path / "forgotten.sqlite3")
    stones.bury("ana", ["The parrot is called Dunya."])
    stones.close()
    with closing(sqlite3.connect(tmp_path / "forgotten.sqlite3")) as connection, connection:
        connection.execute(damage)
    with pytest.raises(UnavailableError, match=r"forgotten\.sqlite3 is damaged.*restore a backup"):
        Tombstones(tmp_path / "forgotten.sqlite3")
