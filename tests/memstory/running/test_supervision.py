import json
import os

import pytest

from memstory.running.supervision import ENDED, REPORT, SUPERVISOR, messages_of, tell_supervisor


def test_what_a_process_tells_is_told_to_the_one_that_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv(SUPERVISOR, str(tmp_path))
    tell_supervisor(REPORT, "reports/latest")
    tell_supervisor(ENDED)
    assert messages_of(os.getpid(), tmp_path) == {REPORT: "reports/latest", ENDED: ""}
    assert messages_of(os.getpid() + 1, tmp_path) == {}


@pytest.mark.parametrize("line", ["{}", "not JSON", "[1, 2]", "5", "[" * 5000, "[[], {}, []]", "\ufffd"])
def test_a_line_that_nobody_of_ours_wrote_tells_nothing(tmp_path, monkeypatch, line):
    monkeypatch.setenv(SUPERVISOR, str(tmp_path))
    tell_supervisor(REPORT, "reports/latest")
    (told,) = tmp_path.iterdir()
    with told.open("a") as file:
        file.write(f"{line}\n{json.dumps([os.getpid(), 'ended'])}\n")
    assert messages_of(os.getpid(), tmp_path) == {REPORT: "reports/latest"}
