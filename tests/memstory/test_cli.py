import json

import pytest

from memstory.cli import main
from memstory.reporting import make_fingerprint, write_reports


def test_report_makes_the_report_again_and_says_where(tmp_path, capsys):
    write_reports(tmp_path, [], make_fingerprint([]))
    (tmp_path / "report.md").unlink()
    assert main(["report", str(tmp_path)]) == 0
    assert (tmp_path / "report.md").exists()
    assert "made from results.json, 0 cases" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "[]", json.dumps({"schema": "other"})])
def test_a_folder_without_results_is_one_line_on_stderr_and_a_code(tmp_path, capsys, content):
    if content:
        (tmp_path / "results.json").write_text(content)
    assert main(["report", str(tmp_path)]) == 4
    error = capsys.readouterr().err
    assert error.startswith("memstory report: ")
    assert error.count("\n") == 1


def test_an_unknown_command_names_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["reprot"])
    assert "report" in capsys.readouterr().err
