import gzip
import json

import pytest


@pytest.fixture
def baseline(terminal):
    terminal.save()
    terminal.record()
    assert terminal.type("gate", "out", "--baseline", "kept/base.json", "--update").code == 0
    return terminal.folder / "kept/base.json"


def worsen(terminal):
    results = terminal.folder / "out/results.json"
    document = json.loads(results.read_text("utf-8"))
    document["cases"][0].update(outcome="failed", reason="nothing came back")
    results.write_text(json.dumps(document), "utf-8")


def test_the_run_of_the_baseline_passes(terminal, baseline):
    said = terminal.type("gate", "out", "--baseline", str(baseline))
    assert (said.code, said.out) == (0, "nothing changed\ngate: passed (1 case judged in both runs)\n")


def test_a_regression_is_exit_code_1_and_names_the_case(terminal, baseline):
    worsen(terminal)
    said = terminal.type("gate", "out", "--baseline", str(baseline))
    assert said.code == 1
    assert said.out.splitlines()[0] == "regression: tea[control:oracle]: passed, now failed: nothing came back"


def test_too_few_cases_is_exit_code_2(terminal, baseline):
    said = terminal.type("gate", "out", "--baseline", str(baseline), "--least-cases", "5")
    assert said.code == 2
    assert "too few cases were judged in both runs: 1, wanted are 5" in said.out


def test_update_shows_the_difference_and_rewrites_the_baseline(terminal, baseline):
    worsen(terminal)
    said = terminal.type("gate", "out", "--baseline", str(baseline), "--update")
    assert said.code == 0
    assert "regression: tea[control:oracle]: passed, now failed" in said.out
    assert "base.json: rewritten, 1 case" in said.out
    assert json.loads(baseline.read_text("utf-8"))["cases"][0]["outcome"] == "failed"
    assert terminal.type("gate", "out", "--baseline", str(baseline)).code == 0


def test_json_has_the_exit_code_too(terminal, baseline):
    worsen(terminal)
    found = json.loads(terminal.type("gate", "out", "--baseline", str(baseline), "--json").out)
    assert (found["code"], len(found["regressions"])) == (1, 1)


def test_a_run_that_was_cut_does_not_become_the_baseline(terminal, baseline):
    results = terminal.folder / "out/results.json"
    results.write_text(results.read_text("utf-8").replace('"complete": true', '"complete": false'), "utf-8")
    kept = baseline.read_bytes()
    said = terminal.type("gate", "out", "--baseline", str(baseline), "--update")
    assert (said.code, baseline.read_bytes()) == (2, kept)
    assert "cut short and cannot become the baseline" in said.err


@pytest.mark.usefixtures("baseline")
def test_a_missing_baseline_is_exit_code_2_and_named(terminal):
    said = terminal.type("gate", "out", "--baseline", "none.json")
    assert said.code == 2
    assert "none.json" in said.err


def test_a_gzipped_baseline_is_results_json_and_is_read_by_gate_and_by_compare(terminal, baseline):
    zipped = baseline.with_name("base.json.gz")
    assert terminal.type("gate", "out", "--baseline", str(zipped), "--update").code == 0
    results = (terminal.folder / "out/results.json").read_bytes()
    assert (baseline.read_bytes(), gzip.decompress(zipped.read_bytes())) == (results, results)
    assert terminal.type("gate", "out", "--baseline", str(zipped)).code == 0
    said = terminal.type("compare", "out", str(zipped), "--diff")
    assert (said.code, said.out) == (0, "no difference, except for times\n")
    assert "base: control:oracle" in terminal.type("compare", "out", str(zipped)).out


@pytest.mark.parametrize(
    "words", [["gate", "out", "--baseline"], ["gate", "out", "--update", "--baseline"], ["compare", "out"]]
)
def test_a_file_in_the_packed_form_is_refused_in_one_line_that_says_how_to_renew_it(terminal, baseline, words):
    packed = baseline.with_name("old.json.gz")
    packed.write_bytes(gzip.compress(b'{"schema": "memstory.packed/1", "cases": [[0, [{}]]]}'))
    said = terminal.type(*words, str(packed))
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "old.json.gz has the schema 'memstory.packed/1'" in said.err
    assert "'memstory gate RUN --baseline FILE --update'" in said.err


def test_a_damaged_baseline_is_kept_and_the_way_to_a_new_one_is_said(terminal, baseline):
    baseline.write_text('{"format": "memstory.results/2"}', "utf-8")
    said = terminal.type("gate", "out", "--baseline", str(baseline), "--update")
    assert (said.code, baseline.read_text("utf-8")) == (2, '{"format": "memstory.results/2"}')
    assert "delete it: '--update' then writes a new one" in said.err
