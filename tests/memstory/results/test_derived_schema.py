import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from memstory.results.baseline import as_baseline
from memstory.results.derived_schema import results_schema
from memstory.results.fingerprint import make_fingerprint
from memstory.results.folder.results_file import results_text
from memstory.results.runs import Part, make_run
from memstory.results.totals import with_totals

ROOT = Path(__file__).parents[3]
VALIDATOR = Draft202012Validator(results_schema())


def written(cases, **about):
    run = make_run([with_totals(case) for case in cases], make_fingerprint(cases, **about))
    return json.loads(results_text(run)), json.loads(results_text(as_baseline(run)))


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(VALIDATOR.schema)


def test_the_committed_schema_is_that_of_the_classes():
    committed = (ROOT / "docs/reference/results.schema.json").read_text("utf-8")
    assert json.loads(committed) == results_schema()


def test_a_run_of_every_outcome_and_its_baseline_obey_the_schema(results):
    for tree in written(results, shard=Part(number=1, count=2, cases=6, of=9, digest="d")):
        VALIDATOR.validate(tree)


def test_an_empty_run_obeys_the_schema():
    for tree in written([]):
        VALIDATOR.validate(tree)


def test_several_trials_obey_the_schema(make_case):
    trials = [make_case.trial("passed", 0), make_case.trial("failed", 1)]
    for tree in written([make_case(outcome="failed", trials=trials)]):
        VALIDATOR.validate(tree)


@pytest.mark.parametrize("change", [{"surprise": 1}, {"outcome": "pased"}, {"seconds": "long"}, {"trials": None}])
def test_what_the_classes_do_not_know_the_schema_does_not_allow(results, change):
    tree, _ = written(results)
    tree["cases"][0] |= change
    assert not VALIDATOR.is_valid(tree)
