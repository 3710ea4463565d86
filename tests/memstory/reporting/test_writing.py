import json
from pathlib import Path

import pytest

from memstory.contract.errors import SetupError
from memstory.reporting.writing import begin_reports, report_from_spool, write_reports
from memstory.results.folder.spool import SPOOL_NAME, Spool, write_selected
from memstory.results.runs import make_fingerprint, make_run


def write(folder, results, **options):
    return write_reports(folder, make_run(results, make_fingerprint(results), **options))


def test_both_reports_are_written_and_the_spool_is_gone(tmp_path, results):
    folder = tmp_path / "reports" / "latest"
    Spool(folder).append(results[0])
    write(folder, results)
    written = ["recordings.jsonl", "report.html", "report.md", "results.json"]
    assert sorted(path.name for path in folder.iterdir()) == written
    assert json.loads((folder / "results.json").read_text())["complete"] is True


def test_the_page_of_a_run_and_of_its_files_have_the_same_plots(tmp_path, run):
    steps = run.case(seconds=(0.25, 0.5))
    write(tmp_path, [steps])
    first = (tmp_path / "report.html").read_text()
    report_from_spool(tmp_path)
    again = (tmp_path / "report.html").read_text()
    assert "Latency by operation" in first
    assert first[first.index("<figure>") :] == again[again.index("<figure>") :]


def test_a_report_that_cannot_be_made_leaves_the_old_one_and_the_spool(tmp_path, results, monkeypatch):
    write(tmp_path, results[:1])
    before = (tmp_path / "results.json").read_bytes()
    Spool(tmp_path).append(results[1])

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "chmod", full)
    with pytest.raises(SetupError, match="no space"):
        write(tmp_path, results)
    assert (tmp_path / "results.json").read_bytes() == before
    left = ["recordings.jsonl", "report.html", "report.md", "results.json", SPOOL_NAME]
    assert sorted(path.name for path in tmp_path.iterdir()) == left


def test_a_killed_run_leaves_a_report_of_what_it_did(tmp_path, results):
    write(tmp_path, results[:1])
    for case in results[1:]:
        Spool(tmp_path).append(case)
    with (tmp_path / SPOOL_NAME).open("ab") as file:
        file.write(b'\n{"id": "S7[top')
    said = report_from_spool(tmp_path)
    assert "cut short, 5 cases done; 1 more was being written and is lost" in said
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["complete"] is False
    assert len(document["cases"]) == 5
    assert "cut short" in (tmp_path / "report.md").read_text()


def test_without_a_spool_the_report_is_made_again_from_the_results_alone(tmp_path, results):
    write(tmp_path, results)
    first = (tmp_path / "report.md").read_text()
    (tmp_path / "report.md").unlink()
    assert "made from results.json, 6 cases" in report_from_spool(tmp_path)
    assert (tmp_path / "report.md").read_text() == first


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "holds neither"), ("{", "is not JSON"), ('{"schema": "memstory.results/9"}', "results/9"), ("[]", "None")],
)
def test_a_folder_without_usable_results_says_what_is_wrong(tmp_path, content, message):
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    with pytest.raises(SetupError, match=message):
        report_from_spool(tmp_path)


def test_text_that_utf8_cannot_say_is_written_and_read_back(tmp_path, make_case):
    write(tmp_path, [make_case(title="broken \ud800 title")])
    assert json.loads((tmp_path / "results.json").read_text())["cases"][0]["title"] == "broken \ud800 title"
    assert "broken" in (tmp_path / "report.md").read_text()


def test_what_a_killed_run_had_done_is_kept_beside_the_next_run_and_told(tmp_path, results):
    write_selected(tmp_path, results)
    for case in results[:2]:
        Spool(tmp_path).append(case)
    said = []
    begin_reports(tmp_path, said.append).release()
    killed = tmp_path / "killed"
    assert said == [
        (
            f"The run before was killed: 2 cases done, {len(results) - 2} without a result. "
            f"'memstory report {killed}' writes its report."
        )
    ]
    assert not (tmp_path / SPOOL_NAME).exists()
    assert "2 cases done" in report_from_spool(killed)
    begin_reports(tmp_path, said.append).release()
    assert len(said) == 1


def test_of_a_run_that_ended_nothing_is_told_to_the_next(tmp_path, results):
    write_selected(tmp_path, results)
    write_reports(tmp_path, make_run(results, make_fingerprint(results)))
    said = []
    begin_reports(tmp_path, said.append).release()
    assert (said, (tmp_path / "killed").exists()) == ([], False)


def test_what_a_killed_run_left_is_not_moved_through_a_link(tmp_path, results):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/killed").symlink_to(tmp_path / "elsewhere")
    Spool(tmp_path / "run").append(results[0])
    begin_reports(tmp_path / "run").release()
    assert list((tmp_path / "elsewhere").iterdir()) == []
