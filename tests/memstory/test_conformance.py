"""The contract finds what is wrong with a target: each fault fails the test that is about it, and the oracle none."""

from collections.abc import Sequence
from dataclasses import replace
from unittest import SkipTest

import pytest

from memstory.conformance import TargetContract
from memstory.controls import MUTANTS, Oracle, OracleFactory
from memstory.target import Hit, Query, Scope


def broken(factory_class):
    """Run the contract without pytest; return the names of the tests that failed, and how many were skipped."""
    contract = type("TestIt", (TargetContract,), {"factory": factory_class})
    contract.setup_class()
    failed, skipped = {}, 0
    try:
        for name in sorted(name for name in dir(contract) if name.startswith("test_")):
            try:
                getattr(contract(), name)()
            except SkipTest:
                skipped += 1
            except AssertionError as error:
                failed[name] = str(error)
    finally:
        contract.teardown_class()
    return failed, skipped


def factory_of(target_class, without=(), also=(), spec="memstory.controls:OracleFactory"):
    class Factory(OracleFactory):
        def capabilities(self, options):
            return (super().capabilities(options) - set(without)) | set(also)

        def target(self):
            return target_class()

    Factory.spec = spec
    return Factory


def test_the_oracle_keeps_the_whole_contract():
    assert broken(OracleFactory) == ({}, 0)


@pytest.mark.parametrize(
    ("mutant", "test"),
    [
        ("amnesiac", "test_everything_that_was_added_is_listed"),
        ("leaky", "test_users_are_apart"),
        ("stale", "test_an_update_replaces_the_text"),
        ("undeleting", "test_a_deleted_memory_is_gone"),
        ("duplicating", "test_everything_that_was_added_is_listed"),
    ],
)
def test_each_fault_fails_the_test_that_is_about_it(mutant, test):
    failed, _ = broken(MUTANTS[mutant])
    assert test in failed


class ForgetsOnRestart(Oracle):
    async def open(self, env, clock):
        await super().open(replace(env, workspace=f"{env.workspace}/{id(self)}"), clock)

    def _save(self):
        pass


class IgnoresConditions(Oracle):
    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return await super().search(Query(text=query.text, top_k=query.top_k), scope)


class MixesSessions(Oracle):
    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return await super().search(query, Scope(user=scope.user))


class ScoresUpsideDown(Oracle):
    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        hits = await super().search(query, scope)
        return [replace(hit, score=float(place)) for place, hit in enumerate(hits)]


@pytest.mark.parametrize(
    ("factory", "test", "said"),
    [
        (
            factory_of(ForgetsOnRestart),
            "test_what_was_acknowledged_outlives_a_restart",
            "after a restart the memory is",
        ),
        (
            factory_of(IgnoresConditions, without=["search.where"]),
            "test_undeclared_conditions_of_a_search_are_not_ignored",
            "'search.budget' is not declared and must raise NotSupported",
        ),
        (factory_of(MixesSessions), "test_sessions_are_apart_where_asked_to", "finds what was said in another"),
        (factory_of(ScoresUpsideDown), "test_an_added_text_is_found", "higher is better and best is first"),
        (
            factory_of(Oracle, also=["feedback"]),
            "test_what_is_declared_is_what_is_overridden",
            "'feedback' is declared, but Oracle does not override 'feedback'",
        ),
        (
            factory_of(Oracle, without=["list"]),
            "test_what_is_declared_is_what_is_overridden",
            "Oracle overrides 'list', but 'list' is not declared",
        ),
        (
            factory_of(Oracle, without=["delete"]),
            "test_undeclared_operations_are_not_supported",
            "'delete' is not declared and must raise NotSupported; it returned False",
        ),
        (
            factory_of(Oracle, also=["serach"]),
            "test_capabilities_are_words_that_stories_use",
            "capabilities() has words that no story can ask for: serach",
        ),
        (factory_of(Oracle, spec=None), "test_factory_can_be_made_by_its_spec", "the factory has no 'spec'"),
    ],
)
def test_a_broken_promise_is_told_in_words(factory, test, said):
    failed, _ = broken(factory)
    assert said in failed.get(test, ""), failed


def test_what_is_not_declared_is_skipped_and_not_passed():
    failed, skipped = broken(factory_of(Oracle, without=["add"]))
    assert "test_an_added_text_is_found" not in failed
    assert skipped >= 8
