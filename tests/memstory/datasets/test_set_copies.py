"""Copies of the sets in the cache: fetched from a server of this machine, added, and compared afterwards."""

import hashlib
import json
import os
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memstory import data_sets
from memstory.contract.errors import SetupError
from memstory.datasets import add_set, checked_copy, fetch_set, read_set, set_copies, set_copy

ENTRY = {
    "question_id": "e1",
    "question_type": "multi-session",
    "question": "Which dog?",
    "answer": "a beagle",
    "haystack_session_ids": ["answer_1"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [[{"role": "user", "content": "I adopted a beagle.", "has_answer": True}]],
    "answer_session_ids": ["answer_1"],
}
ORACLE = "longmemeval-oracle"
FILE = "longmemeval_oracle.json"
CHAT = [{"batch_number": 1, "turns": [[{"role": "user", "id": 0, "content": "Hello"}]]}]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_words):
        pass


class Cutting(Quiet):
    """Promises more than it sends."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"[{")


@pytest.fixture
def place(tmp_path):
    """Return a function that serves a folder, and gives its address."""
    servers = []

    def serve(handler=Quiet):
        folder = tmp_path / "place"
        folder.mkdir(exist_ok=True)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def environ(tmp_path):
    return {"MEMSTORY_CACHE": str(tmp_path / "cache")}


def publish(folder, content, name=FILE):
    path = folder / "place" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(name, address, environ):
    return fetch_set(name, tell=lambda _file, _bytes: None, check=read_set, environ=environ, address=address)


def test_a_set_of_unknown_hash_is_unpinned_and_its_first_hash_is_noted(tmp_path, place, environ):
    digest = publish(tmp_path, [ENTRY])
    got = fetch(ORACLE, place(), environ)
    assert (got.pin, got.hashes) == ("unpinned", {FILE: digest})
    assert str(got) == f"{ORACLE}: unpinned, SHA-256 {digest[:12]}"
    assert json.loads(got.path.read_text()) == [ENTRY]
    assert set_copy(ORACLE, environ) == got


def test_another_version_at_the_second_download_is_refused_and_the_first_stays(tmp_path, place, environ):
    first = publish(tmp_path, [ENTRY])
    address = place()
    fetch(ORACLE, address, environ)
    publish(tmp_path, [ENTRY | {"question": "Which cat?"}])
    with pytest.raises(SetupError, match=r"another version.*what came the first time"):
        fetch(ORACLE, address, environ)
    assert checked_copy(ORACLE, environ).hashes == {FILE: first}


def test_a_known_hash_pins_what_comes_and_refuses_anything_else(tmp_path, place, environ, monkeypatch):
    digest = publish(tmp_path, [ENTRY])
    pinned = replace(data_sets.SETS[ORACLE], hashes={FILE: digest})
    monkeypatch.setitem(data_sets.SETS, ORACLE, pinned)
    assert fetch(ORACLE, place(), environ).pin == "hash"
    monkeypatch.setitem(data_sets.SETS, ORACLE, replace(pinned, hashes={FILE: "0" * 64}))
    with pytest.raises(SetupError, match=r"another version.*its known SHA-256") as wrong:
        fetch(ORACLE, place(), environ)
    assert "\n" not in str(wrong.value)


def test_what_is_cut_short_is_not_kept(place, environ):
    with pytest.raises(SetupError, match=r"broke off \(2 of 1,000 bytes came\)"):
        fetch(ORACLE, place(Cutting), environ)
    assert set_copy(ORACLE, environ) is None


def test_what_is_not_of_the_form_is_not_kept(tmp_path, place, environ):
    publish(tmp_path, "version https://git-lfs.github.com/spec/v1")
    with pytest.raises(SetupError, match="LongMemEval's format"):
        fetch(ORACLE, place(), environ)
    assert set_copy(ORACLE, environ) is None


def test_a_place_that_cannot_be_reached_says_how_else_to_get_it(environ):
    with pytest.raises(SetupError, match=r"cannot be reached.*memstory data add") as offline:
        fetch(ORACLE, "http://127.0.0.1:1/", environ)
    assert "\n" not in str(offline.value)


def test_a_place_without_the_file_says_so(place, environ):
    with pytest.raises(SetupError, match="answers 404"):
        fetch(ORACLE, place(), environ)


def test_of_a_chat_the_shortened_file_is_taken_where_there_is_one(tmp_path, place, environ, monkeypatch):
    names = [[f"{chat}/{name}" for name in either] for chat in (1, 2) for either in data_sets._CHAT_FILES]
    monkeypatch.setitem(data_sets.SETS, "beam", replace(data_sets.SETS["beam"], files=names))
    for name in ("1/chat.json", "1/chat_trunecated.json", "2/chat.json"):
        publish(tmp_path, CHAT, name)
    for chat in (1, 2):
        publish(tmp_path, {"abstention": [{"question": "Who?"}]}, f"{chat}/probing_questions/probing_questions.json")
    got = fetch("beam", place(), environ)
    assert set(got.hashes) == {
        "1/chat_trunecated.json", "1/probing_questions/probing_questions.json",
        "2/chat.json", "2/probing_questions/probing_questions.json",
    }  # fmt: skip


def test_a_copy_that_one_has_is_added_and_a_change_of_it_is_seen(tmp_path, environ):
    publish(tmp_path, [ENTRY], "mine.json")
    got = add_set(ORACLE, tmp_path / "place" / "mine.json", check=read_set, environ=environ)
    assert got.pin == "unpinned"
    got.path.write_text("[]")
    with pytest.raises(SetupError, match=r"has changed since it came.*fetches it again"):
        checked_copy(ORACLE, environ)


def test_a_folder_for_a_file_and_a_file_of_another_form_are_not_added(tmp_path, environ):
    with pytest.raises(SetupError, match="is not the file of"):
        add_set(ORACLE, tmp_path, check=read_set, environ=environ)
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(SetupError, match="LongMemEval's format"):
        add_set(ORACLE, tmp_path / "other.json", check=read_set, environ=environ)
    assert set_copy(ORACLE, environ) is None


def test_a_full_disk_is_told_with_the_folder(tmp_path, environ, monkeypatch):
    publish(tmp_path, [ENTRY], "mine.json")

    def full(_source, _target):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(set_copies.shutil, "copyfile", full)
    with pytest.raises(SetupError, match="No space left on device"):
        add_set(ORACLE, tmp_path / "place" / "mine.json", check=read_set, environ=environ)


def test_a_cache_that_is_a_file_is_told_in_one_line(tmp_path, place):
    publish(tmp_path, [ENTRY])
    (tmp_path / "taken").write_text("")
    with pytest.raises(SetupError, match="cannot be written"):
        fetch(ORACLE, place(), {"MEMSTORY_CACHE": str(tmp_path / "taken")})


def test_a_damaged_note_says_how_to_mend_it(tmp_path, environ):
    folder = tmp_path / "cache" / "data" / ORACLE
    folder.mkdir(parents=True)
    (folder / "set.json").write_text("{")
    with pytest.raises(SetupError, match=r"is damaged.*fetches it again"):
        set_copy(ORACLE, environ)
