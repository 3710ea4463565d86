"""The contract finds what is wrong with a target: a false declaration fails the test about it, and the oracle none."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import SkipTest

import pytest

from memstory.conformance import CHECKED, ELSEWHERE, TargetContract
from memstory.conformance.probe import OVER, probe
from memstory.contract.errors import MemstoryError, Refused
from memstory.contract.target import Hit, Query, Receipt, ReceiptItem, Ref, Scope, ToolCall
from memstory.controls import MUTANTS, Oracle, OracleFactory
from memstory.controls.matching import is_past
from memstory.language.capabilities import FEATURES, families, operations
from memstory.targets.discovery import load_spec

OF_PROCESSES = ("crash", "other_process")


def broken(factory_class):
    """Run the contract without pytest; return what each test that failed said, and the tests that were skipped."""
    kind = getattr(factory_class, "kind", None)
    contract = type("TestIt", (TargetContract,), {"factory": factory_class, "kind": kind})
    contract.setup_class()
    failed, skipped = {}, set()
    try:
        for name in sorted(name for name in dir(contract) if name.startswith("test_")):
            try:
                getattr(contract(), name)()
            except SkipTest:
                skipped.add(name)
            except (AssertionError, MemstoryError) as error:
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
    able = OracleFactory().capabilities({})
    others = {name for word, names in CHECKED.items() if not word.endswith(".") and word not in able for name in names}
    assert broken(OracleFactory) == ({}, others)


class GivesNoIds(Oracle):
    async def add(self, items, scope):
        done = await super().add(items, scope)
        return Receipt(items=[replace(one, id=None) for one in done.items])


class RefusesEverything(Oracle):
    async def add(self, items, scope):
        raise Refused("the argument is of another type")

    search = add


@pytest.mark.parametrize(
    "test",
    [
        "test_a_deleted_memory_is_gone",
        "test_an_update_replaces_the_text",
        "test_a_memory_is_looked_up_by_its_id",
    ],
)
def test_a_memory_that_gives_no_ids_is_told_so_and_never_asked_to_forget_everything(test):
    failed, _ = broken(factory_of(GivesNoIds, without=OF_PROCESSES))
    assert "gives no id" in failed[test]


def test_a_memory_that_refuses_everything_is_not_one_that_asks_for_a_user():
    failed, _ = broken(factory_of(RefusesEverything, without=OF_PROCESSES, also=["scope.required"]))
    assert "of another type" in failed["test_nothing_is_done_without_a_user"]


def test_a_target_is_closed_where_the_time_of_a_probe_is_over_in_its_middle():
    opened = []

    class NeverFinds(Oracle):
        async def open(self, env, clock):
            await super().open(env, clock)
            opened.append(self)

        async def search(self, query, scope):
            await asyncio.sleep(3600)

        async def close(self):
            await super().close()
            opened.remove(self)

    class Factory(factory_of(NeverFinds)):
        async def stop(self):
            assert not opened, "a target is open while its factory stops"

    found = probe(Factory(), {}, seconds=0.5)
    assert {one.why for one in found if one.capability == "search"} == {OVER}


def test_every_capability_has_a_test_or_a_reason_why_not():
    known = {*operations(), *FEATURES, *(f"{name}." for name in families())}
    assert sorted([*CHECKED, *ELSEWHERE]) == sorted(known), "CHECKED comes of @shows(…), ELSEWHERE of elsewhere.py"


@pytest.mark.parametrize(
    ("mutant", "test"),
    [
        ("amnesiac", "test_everything_that_was_added_is_listed"),
        ("leaky", "test_users_are_apart"),
        ("stale", "test_an_update_replaces_the_text"),
        ("undeleting", "test_a_deleted_memory_is_gone"),
        ("duplicating", "test_everything_that_was_added_is_listed"),
        ("writing_at_the_end", "test_what_was_acknowledged_outlives_a_kill"),
    ],
)
def test_each_fault_fails_the_test_that_is_about_it(mutant, test):
    failed, _ = broken(MUTANTS[mutant])
    assert test in failed


class Changed(Oracle):
    """Searches with another query than was asked for, and changes what it found."""

    def asked(self, query: Query, scope: Scope) -> tuple[Query, Scope]:
        return query, scope

    def found(self, hit: Hit) -> Hit:
        return hit

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [self.found(hit) for hit in await super().search(*self.asked(query, scope))]


class Renames(Changed):
    def found(self, hit):
        return replace(hit, id=f"other-{hit.id}")


class GivesNoScores(Changed):
    def found(self, hit):
        return replace(hit, score=None)


class DatesWrong(Changed):
    def found(self, hit):
        return replace(hit, created_at="2020-02-02T12:00:00+00:00")


class IgnoresLeastScore(Changed):
    def asked(self, query, scope):
        return replace(query, min_score=None), scope


class IgnoresWhere(Changed):
    def asked(self, query, scope):
        return replace(query, where={}), scope


class IgnoresBudget(Changed):
    def asked(self, query, scope):
        return replace(query, token_budget=None), scope


class IgnoresMoment(Changed):
    def asked(self, query, scope):
        return replace(query, as_of=None), scope


class MixesSessions(Changed):
    def asked(self, query, scope):
        return query, Scope(user=scope.user)


class KnowsFactsInEverySession(Oracle):
    def _in(self, scope):
        own = super()._in(scope)
        return [*own, *(one for one in super()._in(Scope(user=scope.user)) if one.hit.kind is None and one not in own)]


class LosesPages(Oracle):
    def _put(self, new, old):
        kept = {name: value for name, value in new.hit.metadata.items() if name != "page"}
        super()._put(replace(new, hit=replace(new.hit, metadata=kept)), old)


class FlattensLists(Oracle):
    def _put(self, new, old):
        flat = {name: str(value) if isinstance(value, list) else value for name, value in new.hit.metadata.items()}
        super()._put(replace(new, hit=replace(new.hit, metadata=flat)), old)


class DropsSmallTalk(Oracle):
    def _put(self, new, old):
        if len(new.hit.text.split()) > 2:
            super()._put(new, old)


class Trims(Oracle):
    def _put(self, new, old):
        super()._put(replace(new, hit=replace(new.hit, text=new.hit.text.strip())), old)


class FindsNoIds(Oracle):
    async def get(self, ref, scope):
        return None if ref.id else await super().get(ref, scope)


class FindsNoKeys(Oracle):
    async def get(self, ref, scope):
        return None if ref.key else await super().get(ref, scope)


class KeepsWhatAKeyNamed(Oracle):
    async def add(self, items, scope):
        before = [self._find(Ref(key=item.key), scope) for item in items if item.key]
        receipt = await super().add(items, scope)
        self._memories += filter(None, before)
        self._save()
        return receipt


class ListsTwo(Oracle):
    async def list(self, scope, kinds=(), limit=None):
        return (await super().list(scope, kinds, limit))[:2]


class ListsAllUsers(Oracle):
    async def list(self, scope, kinds=(), limit=None):
        return await super().list(scope, kinds, limit) if scope.session else [one.hit for one in self._memories]


class UpdatesNothing(Oracle):
    async def update(self, ref, item, scope):
        if self._find(ref, scope) is None:
            raise Refused("unknown")
        return Receipt()


class UpdatesNothingByWords(Oracle):
    async def update_about(self, about, item, scope):
        return Receipt()


class Deletes(Oracle):
    """Deletes what `wanted` makes of the reference; None is nothing."""

    def wanted(self, ref):
        return ref

    async def delete(self, ref, scope):
        wanted = self.wanted(ref)
        return self._find(ref, scope) is not None if wanted is None else await super().delete(wanted, scope)


class DeletesNothing(Deletes):
    def wanted(self, ref):
        return ref if ref.durable or ref == Ref() else None


class DeletesNoUser(Deletes):
    def wanted(self, ref):
        return None if ref == Ref() else ref


class DeletesForNow(Deletes):
    def wanted(self, ref):
        return replace(ref, durable=False)


class DeletesEverythingItSays(Oracle):
    async def delete(self, ref, scope):
        await super().delete(ref, scope)
        return True


class DeletesNothingByWords(Oracle):
    async def delete_about(self, about, scope, *, durable=False):
        return 1


class KeepsTrash(Oracle):
    async def delete(self, ref, scope):
        found = self._find(ref, scope)
        self._path.with_name("trash").write_text(found.hit.text if found else "", "utf-8")
        return await super().delete(ref, scope)


class HasTimeForever(Oracle):
    def _is_over(self, one, now):
        return is_past(one.hit.metadata.get("expires_at"), now)


class ReadsNoDates(Oracle):
    def _is_over(self, one, now):
        return is_past(one.until, now)


class ReadsOnlyAfterwards(Oracle):
    async def open(self, env, clock):
        mark = Path(env.workspace) / "opened"
        self._is_again = mark.exists()
        mark.touch()
        await super().open(env, clock)

    def _put(self, new, old):
        if not self._is_again:
            super()._put(new, old)


class ForgetsOnRestart(Oracle):
    async def open(self, env, clock):
        await super().open(env, clock)
        self._path.unlink(missing_ok=True)
        self._memories = []


class NamesOneEmbedder(Oracle):
    async def about(self):
        return {"embedder": "words"}


class SaysNothing(Oracle):
    async def context(self, query, scope):
        self._refuse_undeclared(query)
        return ""


class TakesNoRatings(Oracle):
    async def feedback(self, ref, value, scope):
        return False


class HasEveryTool(Oracle):
    async def tool(self, name, args, scope, caller=None):
        return ToolCall(name=name, args=args)


class IgnoresVectors(Oracle):
    def _score_of(self, asked):
        self._vectors = {}
        return super()._score_of(asked)


class HasNoTools(Oracle):
    async def tools(self):
        return ()


class LoadsNothing(Oracle):
    async def load(self, items, scope):
        for item in items:
            yield Receipt(items=[ReceiptItem(id="1", text=item.text)])


lying = partial(factory_of, spec=None)
LIES = {
    "add": (Renames, "test_an_added_text_is_found"),
    "search": (Renames, "test_an_added_text_is_found"),
    "add.verbatim": (DropsSmallTalk, "test_every_text_is_kept"),
    "add.exact": (Trims, "test_a_text_comes_back_letter_for_letter"),
    "add.metadata": (LosesPages, "test_metadata_comes_back_with_its_text"),
    "add.metadata.lists": (FlattensLists, "test_lists_and_mappings_in_metadata_come_back"),
    "add.key": (KeepsWhatAKeyNamed, "test_a_key_names_one_text"),
    "add.ttl": (HasTimeForever, "test_a_memory_is_gone_when_its_time_is_over"),
    "clock": (DatesWrong, "test_a_memory_is_dated_by_the_clock_of_the_story"),
    "context": (SaysNothing, "test_the_context_has_what_was_added"),
    "dedup": (Oracle, "test_what_is_said_twice_is_kept_once"),
    "delete": (DeletesNothing, "test_a_deleted_memory_is_gone"),
    "delete.about": (DeletesNothingByWords, "test_deleting_by_words_takes_what_they_name"),
    "delete.durable": (DeletesForNow, "test_what_is_deleted_for_good_does_not_come_back_with_its_source"),
    "delete.erases": (KeepsTrash, "test_what_is_deleted_is_in_no_file"),
    "delete.reports_missing": (DeletesEverythingItSays, "test_deleting_what_is_unknown_says_so"),
    "delete.scope": (DeletesNoUser, "test_deleting_everything_of_a_user_leaves_only_what_others_have"),
    "embedder.fixed": (IgnoresVectors, "test_a_search_goes_by_the_vectors_of_the_story"),
    "expiry.at": (ReadsNoDates, "test_a_memory_is_gone_at_the_moment_that_its_metadata_names"),
    "feedback": (TakesNoRatings, "test_a_known_memory_can_be_rated"),
    "get.id": (FindsNoIds, "test_a_memory_is_looked_up_by_its_id"),
    "get.key": (FindsNoKeys, "test_a_memory_is_looked_up_by_its_key"),
    "load": (LoadsNothing, "test_what_is_loaded_is_found"),
    "inspect.embedder": (Oracle, "test_what_can_be_looked_at_answers"),
    "list": (ListsTwo, "test_everything_that_was_added_is_listed"),
    "persistent": (ForgetsOnRestart, "test_what_was_acknowledged_outlives_a_restart"),
    "restart": (ReadsOnlyAfterwards, "test_a_closed_memory_can_be_opened_again"),
    "restart.embedder": (NamesOneEmbedder, "test_another_embedder_is_named_or_refused"),
    "scope.required": (Oracle, "test_nothing_is_done_without_a_user"),
    "scope.session": (MixesSessions, "test_sessions_are_apart_where_asked_to"),
    "scope.session_all": (KnowsFactsInEverySession, "test_every_memory_keeps_to_its_session"),
    "scope.user": (ListsAllUsers, "test_users_are_apart"),
    "search.as_of": (IgnoresMoment, "test_a_search_of_a_past_moment_finds_what_was_held_then"),
    "search.budget": (IgnoresBudget, "test_a_search_keeps_to_its_number_of_tokens"),
    "search.explain": (Oracle, "test_every_hit_explains_its_score"),
    "search.min_score": (IgnoresLeastScore, "test_a_search_leaves_out_what_is_below_the_least_score"),
    "search.scores": (GivesNoScores, "test_every_hit_has_a_score_and_the_best_is_first"),
    "search.where": (IgnoresWhere, "test_a_search_finds_only_what_has_the_metadata"),
    "tool": (HasEveryTool, "test_an_unknown_tool_is_an_error_in_the_result"),
    "tool.schema": (HasNoTools, "test_the_tools_are_announced_with_their_schemas"),
    "update": (UpdatesNothing, "test_an_update_replaces_the_text"),
    "update.about": (UpdatesNothingByWords, "test_an_update_by_words_replaces_what_they_name"),
}
FOLLOWS = {
    "delete": ["delete.erases"],
    "persistent": ["restart.embedder"],
    "restart": ["persistent"],
    "scope.session": ["scope.session_all"],
}
"""What the same lie makes false too, so that it is not declared."""


@pytest.mark.parametrize("word", LIES)
def test_a_false_declaration_fails_the_test_about_it_and_no_other(word):
    liar, test = LIES[word]
    factory = lying(liar, without=[*OF_PROCESSES, *FOLLOWS.get(word, ())], also=[word])
    factory.kind = "conversation" if liar is KnowsFactsInEverySession else None
    failed, skipped = broken(factory)
    assert (set(failed), test in skipped) == ({test}, False), failed


PROCESSES = """
import os
from dataclasses import replace
from pathlib import Path
from memstory.controls import Oracle, OracleFactory
from memstory.controls.faults.durability import ReadingOnce, WritingAtTheEnd


class OneFolderEach(Oracle):
    async def open(self, env, clock):
        folder = Path(env.workspace) / str(os.getpid())
        folder.mkdir(exist_ok=True)
        await super().open(replace(env, workspace=str(folder)), clock)


class ReadsOnce(OracleFactory):
    spec = "lying_targets:ReadsOnce"

    def target(self):
        return ReadingOnce()


class CrashLoses(OracleFactory):
    spec = "lying_targets:CrashLoses"

    def capabilities(self, options):
        return super().capabilities(options) - {"other_process"}

    def target(self):
        return WritingAtTheEnd()


class OtherProcessLoses(OracleFactory):
    spec = "lying_targets:OtherProcessLoses"

    def capabilities(self, options):
        return super().capabilities(options) - {"crash"}

    def target(self):
        return OneFolderEach()
"""
LIES_OF_PROCESSES = {
    "crash": ("CrashLoses", "test_what_was_acknowledged_outlives_a_kill"),
    "other_process": ("OtherProcessLoses", "test_a_second_process_finds_what_was_acknowledged"),
}


@pytest.mark.parametrize("word", LIES_OF_PROCESSES)
def test_a_false_declaration_about_processes_fails_the_test_about_it_and_no_other(word, tmp_path, monkeypatch):
    name, test = LIES_OF_PROCESSES[word]
    (tmp_path / "lying_targets.py").write_text(PROCESSES, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    failed, _ = broken(lambda: load_spec(f"lying_targets:{name}"))
    assert set(failed) == {test}, failed


def test_a_memory_that_a_second_process_reads_only_as_it_opens_is_not_open_in_several(tmp_path, monkeypatch):
    (tmp_path / "lying_targets.py").write_text(PROCESSES, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    failed, _ = broken(lambda: load_spec("lying_targets:ReadsOnce"))
    said = "a second process does not find what was acknowledged while it had the memory open"
    assert said in failed["test_a_second_process_finds_what_was_acknowledged"]


def test_every_checked_capability_has_a_lie_that_fails_its_tests():
    told = {"inspect." if word.startswith("inspect.") else word: test
            for word, (_, test) in (LIES | LIES_OF_PROCESSES).items()}  # fmt: skip
    assert {word: [test] for word, test in told.items()} == CHECKED


class IgnoresConditions(Oracle):
    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return await super().search(Query(text=query.text, top_k=query.top_k), scope)


class KeepsWordsOfTrash(Oracle):
    async def delete(self, ref, scope):
        found = self._find(ref, scope)
        self._path.with_name("words").write_text(" ".join(sorted(found.hit.text.lower().split())) if found else "")
        return await super().delete(ref, scope)


class TakesNoneForNoHit(Oracle):
    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return (await super().search(query, scope))[: query.top_k or 0]


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
        (
            factory_of(TakesNoneForNoHit),
            "test_a_search_without_a_number_of_hits_finds_what_was_added",
            "a search without top_k finds []",
        ),
        (
            factory_of(KeepsWordsOfTrash),
            "test_what_is_deleted_is_in_no_file",
            "a file has ['harbour'] after its deletion",
        ),
        (factory_of(MixesSessions), "test_sessions_are_apart_where_asked_to", "finds what was said in another"),
        (
            factory_of(ScoresUpsideDown),
            "test_every_hit_has_a_score_and_the_best_is_first",
            "higher is better and best is first",
        ),
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
    failed, skipped = broken(factory_of(Oracle, without=["add"], spec=None))
    assert "test_an_added_text_is_found" not in failed
    assert {name for word, names in CHECKED.items() if word.startswith("add") for name in names} <= skipped


def test_a_skip_names_what_is_not_declared_and_where_its_worth_is_counted():
    class TestIt(TargetContract):
        factory = factory_of(Oracle, without=["search.where"])

    TestIt.setup_class()
    try:
        with pytest.raises(SkipTest, match=r"^not declared: search\.where; a run's report counts the stories that"):
            TestIt().test_a_search_finds_only_what_has_the_metadata()
    finally:
        TestIt.teardown_class()
