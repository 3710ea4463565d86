"""A recording is read back, also one whose run was killed; other files are refused in one line."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import SetupError
from memstory.models.proxy_recording import Recorder, blank_request, read_calls
from memstory.results.secret_values import Secrets

REQUEST = blank_request("chat/completions", {"messages": ["tea"]})


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "deep" / "run.jsonl"
    recorder = Recorder(path, Secrets())
    recorder.write(REQUEST, {"text": "one"})
    recorder.write(REQUEST, {"text": "two"})
    return path


def test_calls_come_back_in_their_order(recorded):
    calls = read_calls(recorded)
    assert [call.answer for call in calls] == [{"text": "one"}, {"text": "two"}]
    assert {call.key for call in calls} == {REQUEST.key}


def test_a_torn_last_line_is_left_out(recorded):
    recorded.write_text(recorded.read_text("utf-8")[:-10], encoding="utf-8")
    assert [call.answer for call in read_calls(recorded)] == [{"text": "one"}]


def test_a_broken_line_within_is_named(recorded):
    lines = recorded.read_text("utf-8").splitlines()
    recorded.write_text("\n".join([lines[0], "{}", lines[2], ""]), encoding="utf-8")
    with pytest.raises(SetupError, match=r"run\.jsonl:2: this line is not a call"):
        read_calls(recorded)


def test_a_recording_is_never_written_over(recorded):
    with pytest.raises(SetupError, match="exists already"):
        Recorder(recorded, Secrets())


def test_a_missing_recording_says_how_to_make_one(tmp_path):
    with pytest.raises(SetupError, match="--forward URL --record"):
        read_calls(tmp_path / "none.jsonl")


@given(st.binary(max_size=200))
def test_any_other_file_is_one_line(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("files") / "some"
    path.write_bytes(data)
    with pytest.raises(SetupError) as caught:
        read_calls(path)
    assert "\n" not in str(caught.value)


WRITING = """
import sys
from pathlib import Path
from memstory.models.proxy_recording import blank_request
from memstory.models.proxy_recording import Recorder
from memstory.results.secret_values import Secrets

recorder = Recorder(Path(sys.argv[1]), Secrets())
for number in range(1_000_000):
    recorder.write(blank_request("chat/completions", {"messages": [str(number) * 500]}), {"n": number})
    print(number, flush=True)
"""


def test_a_killed_run_leaves_all_calls_but_perhaps_the_last(tmp_path):
    file = tmp_path / "run.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITING, str(file)], stdout=subprocess.PIPE) as writing:  # noqa: S603  (fixed words)
        for _ in range(50):
            writing.stdout.readline()
        writing.kill()
    numbers = [call.answer["n"] for call in read_calls(file)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 50
