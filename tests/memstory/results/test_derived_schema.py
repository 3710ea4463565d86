import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from memstory.results.derived_schema import results_schema
from memstory.results.folder.results_file import results_text
from memstory.results.runs import Part, make_fingerprint, make_run
from memstory.results.totals import with_totals

ROOT = Path(__file__).parents[3]
VALIDATOR = Draft202012Validator(results_schema())


def written(cases, **about):
    run = make_run([with_totals(case) for case in cases], make_fingerprint(cases, **about))
    return json.loads(results_text(run))


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(VALIDATOR.schema)


def test_the_committed_schema_is_that_of_the_classes():
    committed = (ROOT / "docs/reference/results.schema.json").read_text("utf-8")
    assert json.loads(committed) == results_schema()


def test_a_run_of_every_outcome_obeys_the_schema(results):
    VALIDATOR.validate(written(results, shard=Part(number=1, count=2, cases=6, of=9, digest="d")))


def test_an_empty_run_obeys_the_schema():
    VALIDATOR.validate(written([]))


def test_several_trials_obey_the_schema(make_case):
    trials = [make_case.trial("passed", 0), make_case.trial("failed", 1)]
    VALIDATOR.validate(written([make_case(outcome="failed", trials=trials)]))


@pytest.mark.parametrize("change", [{"surprise": 1}, {"outcome": "pased"}, {"seconds": "long"}, {"trials": None}])
def test_what_the_classes_do_not_know_the_schema_does_not_allow(results, change):
    tree = written(results)
    tree["cases"][0] |= change
    assert not VALIDATOR.is_valid(tree)
