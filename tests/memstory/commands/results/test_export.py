from memstory.reporting.writing import write_reports


def test_the_files_lie_beside_the_run_and_are_counted(terminal, run):
    folder = terminal.folder / "reports"
    folder.mkdir()
    write_reports(folder, run("one", run.retrieval([1, 2], target="control:random")).run)
    said = terminal.type("export", "trec", "reports")
    assert (said.code, said.out) == (0, "reports/trec: 2 files\n")
    assert {path.name for path in (folder / "trec").iterdir()} == {"Q1.qrels", "Q1.control_random.run"}
    assert terminal.type("export", "trec", "reports/results.json", "--output", "other").code == 0
    assert (terminal.folder / "other/Q1.qrels").read_text() == "q0 0 right 1\nq1 0 right 1\n"


def test_a_run_that_retrieved_nothing_and_a_folder_without_one_are_refused(terminal, run):
    folder = terminal.folder / "reports"
    folder.mkdir()
    write_reports(folder, run("one", run.case()).run)
    said = terminal.type("export", "trec", "reports")
    assert said.code == 2
    assert "holds no retrieval" in said.err
    assert terminal.type("export", "trec", "nowhere").code == 2


def test_csv_files_lie_beside_the_run_also_where_nothing_was_retrieved(terminal, run):
    folder = terminal.folder / "reports"
    folder.mkdir()
    write_reports(folder, run("one", run.case()).run)
    said = terminal.type("export", "csv", "reports")
    assert (said.code, said.out) == (0, "reports/csv: 1 file\n")
    assert (folder / "csv/cases.csv").read_text("utf-8").splitlines()[1].startswith("S1[mine],S1,,")
