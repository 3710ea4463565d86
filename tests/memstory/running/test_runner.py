"""What a run records, on the oracle and on small targets that misbehave."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from memstory.case import Case
from memstory.contract.clock import StoryClock
from memstory.contract.errors import Mark, NotSupported, Refused, StoryError, TargetError
from memstory.contract.target import Environment, Item, Receipt, ReceiptItem, Scope, TargetFactory, ToolSchema, Turn
from memstory.controls import Oracle, OracleFactory
from memstory.language.story import Expectation, Matcher, Step, Story
from memstory.running.hosting.host import HostedTarget
from memstory.running.runner import RunOptions, run
from memstory.running.stage import open_stage

MARK = Mark("stories/x.yaml", 3, 1)


def step(op, /, *inner, expect=(), save=None, user=None, session=None, **args):
    return Step(op=op, args=args, mark=MARK, steps=inner, expect=expect, save=save or {}, user=user, session=session)


def add(text, **more):
    return step("add", items=[{"text": text}], **more)


def case(*steps, **more):
    return Case(story=Story(id="T1", title="a story", mark=MARK, digest="d", steps=steps, **more), target="toy")


class ToyFactory(TargetFactory):
    """Makes the target class that it was given."""

    def __init__(self, kind=Oracle, spec=None, able=()):
        self.kind, self.spec, self.able = kind, spec, frozenset(able)
        self.made = 0

    def capabilities(self, options):
        return self.able

    def target(self):
        self.made += 1
        return self.kind()


@pytest.fixture
def go(tmp_path):
    async def run_steps(*steps, factory=None, run_options=None, trial=0, holds=None, **story):
        options = RunOptions(**(run_options or {}))
        return await run(case(*steps, **story), factory or ToyFactory(), tmp_path, options, trial=trial, holds=holds)

    return run_steps


class ChoosingFactory(ToyFactory):
    """Serves a story in another way where it needs no `list`; the target says which options it was opened with."""

    class Telling(Oracle):
        async def open(self, env, clock):
            await super().open(env, clock)
            self.options = env.options

        async def about(self):
            return {"way": str(self.options["way"])}

    def __init__(self):
        super().__init__(self.Telling, able={"add", "list"})

    def cheapest_options(self, options, needs):
        return {**options, "way": "dear" if "list" in needs else "cheap"}


@pytest.mark.parametrize(("needs", "way"), [({"add"}, "cheap"), ({"add", "list"}, "dear")])
async def test_the_factory_suits_the_options_to_what_a_story_needs(go, needs, way):
    recording = await go(add("Elixir is nice"), factory=ChoosingFactory(), needs=frozenset(needs))
    assert recording.failure is None
    assert recording.about["way"] == way


async def test_every_step_is_recorded_in_order_with_its_result(go):
    recording = await go(add("Elixir is nice"), step("search", query="Elixir", top_k=3))
    assert recording.failure is None
    assert [(record.path, record.op) for record in recording.steps] == [((0,), "add"), ((1,), "search")]
    assert recording.steps[1].result[0]["text"] == "Elixir is nice"


async def test_saved_names_reach_later_steps_as_values(go):
    recording = await go(
        add("Elixir", save={"lang": "items.0.id"}),
        step("get", id="${lang}"),
        step("delete", id="${lang}"),
        step("get", id="${lang}"),
    )
    got, deleted, gone = recording.steps[1:]
    assert got.result["text"] == "Elixir"
    assert deleted.result is True
    assert gone.result is None
    assert recording.steps[0].names == {"lang": got.args["id"]}


async def test_a_name_whose_value_never_came_fails_the_case_where_it_is_used(go):
    recording = await go(step("search", query="nothing", save={"it": "0.id"}), step("get", id="${it}"))
    assert recording.failure.kind == "failed"
    assert recording.failure.detail is None
    assert "'${it}'" in recording.failure.message
    assert recording.failure.step == (1,)


@pytest.mark.parametrize(("is_shared", "name"), [(False, "bob"), (True, "{mine}.bob")])
async def test_users_names_arrive_whole_unless_other_cases_share_the_memory(go, is_shared, name):
    # H-06
    factory = ToyFactory()
    factory.shares_server = is_shared
    asking = add("secret", user="bob"), step("search", query="secret"), step("list", user="bob")
    mine, bobs = (await go(*asking, factory=factory)).steps[1:]
    assert mine.result == []
    assert len(bobs.result) == 1
    assert bobs.user == name.format(mine=mine.user)


@pytest.mark.parametrize(("is_shared", "kind"), [(False, None), (True, "unsupported")])
async def test_a_story_about_names_is_none_for_a_memory_that_others_share(go, is_shared, kind):
    factory = ToyFactory()
    factory.shares_server = is_shared
    recording = await go(add("secret", user="%"), factory=factory, needs=frozenset({"scope.names"}))
    assert (recording.failure and recording.failure.kind) == kind


async def test_new_session_changes_where_things_are_said_and_search_sees_all_sessions(go):
    recording = await go(
        add("one"),
        step("new_session", name="evening"),
        add("one more"),
        step("search", query="one"),
        step("search", query="one", session="evening"),
    )
    first, _, second, everywhere, evening = recording.steps
    assert (first.session, second.session, everywhere.session) == ("session-1", "evening", None)
    assert len(everywhere.result) == 2
    assert [hit["text"] for hit in evening.result] == ["one more"]


async def test_restart_opens_a_fresh_target_on_the_same_memory(go):
    factory = ToyFactory()
    recording = await go(add("durable"), step("restart"), step("list"), factory=factory)
    assert [hit["text"] for hit in recording.steps[2].result] == ["durable"]
    assert factory.made == 2


async def test_time_moves_only_when_the_story_says_so(go):
    # H-08
    recording = await go(
        add("a"),
        step("advance", microseconds=90_000_000),
        add("b"),
        step("at", moment="2027-01-01T00:00:00+00:00"),
        add("c"),
    )
    times = [record.at for record in recording.steps if record.op == "add"]
    assert times == ["2026-01-01T12:00:00+00:00", "2026-01-01T12:01:30+00:00", "2027-01-01T00:00:00+00:00"]


async def test_a_clock_that_would_go_back_is_the_storys_mistake(go):
    recording = await go(step("at", moment="2020-01-01T00:00:00+00:00"))
    assert recording.failure.kind == "invalid"
    assert "cannot go back" in recording.failure.message


async def test_repeat_numbers_its_passes_and_puts_them_into_the_path(go):
    recording = await go(step("repeat", add("note ${i}"), times=3), step("list"))
    assert [hit["text"] for hit in recording.steps[-1].result] == ["note 0", "note 1", "note 2"]
    assert [record.path for record in recording.steps] == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0,), (1,)]
    assert "i" not in recording.steps[-1].names


async def test_parallel_passes_overlap_and_are_recorded_in_the_order_of_their_numbers(go):
    together = asyncio.Barrier(3)

    class Meeting(Oracle):
        async def add(self, items, scope):
            await together.wait()
            return await super().add(items, scope)

    recording = await go(
        step("parallel", add("mine ${i}", user="u${i}"), times=3),
        factory=ToyFactory(Meeting),
        run_options={"case_seconds": 5},
    )
    assert recording.failure is None
    assert [record.path for record in recording.steps] == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0,)]
    assert [record.user for record in recording.steps[:3]] == ["u0", "u1", "u2"]


class AnswersAndBreaks(Oracle):
    how = "breaks"

    async def say(self, text, scope):
        self.how = "now"
        return Turn(answer=f"You said {text}")

    async def settle(self):
        if self.how == "now":
            raise RuntimeError("the queue is gone")


class AnswersAndHangs(AnswersAndBreaks):
    async def settle(self):
        if self.how == "now":
            await asyncio.Event().wait()


@pytest.mark.parametrize("kind", [AnswersAndBreaks, AnswersAndHangs])
async def test_an_answer_is_recorded_though_the_target_breaks_as_it_settles(go, kind):
    recording = await go(step("say", text="tea"), factory=ToyFactory(kind), run_options={"case_seconds": 0.2})
    assert (recording.failure.kind, recording.failure.step) == ("error", (0,))
    assert [record.result["answer"] for record in recording.steps] == ["You said tea"]


async def test_an_answer_that_is_to_come_right_later_is_not_recorded_when_the_target_breaks(go):
    expect = (Expectation(field="answer", matchers=(), mark=MARK, eventually_seconds=5.0),)
    recording = await go(step("say", text="tea", expect=expect), factory=ToyFactory(AnswersAndBreaks))
    assert (recording.failure.kind, recording.steps) == ("error", ())


async def test_a_pass_that_breaks_names_its_own_step(go):
    class Picky(Oracle):
        async def add(self, items, scope):
            await asyncio.sleep(0 if items[0].text == "bad 1" else 0.01)
            if items[0].text == "bad 1":
                raise RuntimeError("boom")
            return await super().add(items, scope)

    recording = await go(step("parallel", add("bad ${i}"), times=3), factory=ToyFactory(Picky))
    assert recording.failure.step == (0, 1, 0)
    assert [record.path for record in recording.steps] == [(0, 0, 0), (0, 2, 0)]


async def test_what_came_beyond_top_k_is_recorded(go):
    class Generous(Oracle):
        async def search(self, query, scope):
            return await self.list(scope)

    recording = await go(
        step("repeat", add("n ${i}"), times=4), step("search", query="n", top_k=2), factory=ToyFactory(Generous)
    )
    assert len(recording.steps[-1].result) == 4


async def test_a_refusal_is_recorded_and_the_story_goes_on(go):
    recording = await go(step("update", id="nope", text="x"), step("list"))
    assert recording.failure is None
    assert "nope" in recording.steps[0].error
    assert recording.steps[1].result == []


async def test_a_missing_capability_is_unsupported_before_anything_is_opened(go):
    factory = ToyFactory(able=["add"])
    recording = await go(add("x"), factory=factory, needs=frozenset({"add", "chat", "clock"}))
    assert recording.failure.kind == "unsupported"
    assert recording.failure.message == "'toy' does not support chat, clock"
    assert factory.made == 0


async def test_a_missing_capability_of_a_shared_server_is_said_to_be_one(go):
    factory = ToyFactory(able=["add"])
    factory.shares_server = True
    recording = await go(add("x"), factory=factory, needs=frozenset({"add", "restart"}))
    assert recording.failure.message == "'toy', which other cases use too, does not support restart"


async def test_an_operation_that_is_not_overridden_is_unsupported(go):
    recording = await go(step("say", text="hello"))
    assert recording.failure.kind == "unsupported"


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (ValueError("bad"), "error", "ValueError: bad"),
        (StoryError("no such option"), "invalid", "no such option"),
        (NotSupported("chat"), "unsupported", "this memory does not support 'chat'"),
    ],
)
async def test_what_a_target_raises_decides_who_must_act(go, raised, kind, message):
    class Raising(Oracle):
        async def add(self, items, scope):
            raise raised

    recording = await go(add("x"), step("list"), factory=ToyFactory(Raising))
    assert (recording.failure.kind, recording.failure.message, recording.failure.step) == (kind, message, (0,))
    assert recording.steps == ()
    assert ("Traceback" in (recording.failure.detail or "")) == (kind == "error")


async def test_a_target_that_cannot_be_opened_is_said_to_break_there(go):
    class Unreachable(Oracle):
        async def open(self, env, clock):
            raise RuntimeError("cannot reach the index")

    recording = await go(add("x"), factory=ToyFactory(Unreachable))
    assert recording.failure.message == "opening the target: RuntimeError: cannot reach the index"


async def test_cases_that_break_alike_say_the_same_whichever_folder_they_had(go, tmp_path):
    class Missing(Oracle):
        async def add(self, items, scope):
            raise FileNotFoundError(f"no store at {tmp_path}/memory.db")

    recording = await go(add("x"), factory=ToyFactory(Missing))
    assert recording.failure.message == "FileNotFoundError: no store at WORKSPACE/memory.db"


async def test_a_case_that_takes_too_long_says_in_which_step(go):
    # H-07
    class Slow(Oracle):
        closed = False

        async def search(self, query, scope):
            await asyncio.Event().wait()

        async def close(self):
            Slow.closed = True

    recording = await go(
        add("x"), step("search", query="x"), factory=ToyFactory(Slow), run_options={"case_seconds": 0.05}
    )
    assert recording.failure.kind == "error"
    assert recording.failure.message == "timed out after 0.05 s in step 2; --case-timeout allows more"
    assert len(recording.steps) == 1
    assert Slow.closed


async def test_a_timeout_of_the_target_itself_is_not_taken_for_the_limit_of_the_case(go):
    class Impatient(Oracle):
        async def add(self, items, scope):
            raise TimeoutError("the server did not answer")

    recording = await go(add("x"), factory=ToyFactory(Impatient))
    assert recording.failure.message == "TimeoutError: the server did not answer"


async def test_a_target_that_cannot_close_is_an_error(go):
    class Stuck(Oracle):
        async def close(self):
            raise OSError("disk gone")

    recording = await go(add("x"), factory=ToyFactory(Stuck))
    assert recording.failure.message == "OSError: disk gone"
    assert len(recording.steps) == 1


async def test_background_work_is_waited_for_unless_the_story_settles_itself(go):
    # H-07
    class Lazy(Oracle):
        settled = 0

        async def settle(self):
            Lazy.settled += 1

    await go(add("x"), step("list"), factory=ToyFactory(Lazy))
    assert Lazy.settled == 1
    await go(add("x"), step("settle"), add("y"), factory=ToyFactory(Lazy), settles=False)
    assert Lazy.settled == 2


async def test_eventually_asks_again_until_it_holds_and_records_once(go):
    class Late(Oracle):
        asked = 0

        async def list(self, scope, kinds=(), limit=None):
            Late.asked += 1
            return (await super().list(scope)) if Late.asked >= 3 else []

    expect = (
        Expectation(
            field="hits", matchers=(Matcher(name="count", argument=1, mark=MARK),), mark=MARK, eventually_seconds=5
        ),
    )
    recording = await go(
        add("x"),
        step("list", expect=expect),
        factory=ToyFactory(Late),
        holds=lambda _, record: bool(record.result),
    )
    assert Late.asked == 3
    assert [len(record.result or []) for record in recording.steps if record.op == "list"] == [1]


async def test_eventually_gives_up_and_records_the_last_answer(go):
    expect = (Expectation(field="hits", matchers=(), mark=MARK, eventually_seconds=0.05),)
    recording = await go(step("list", expect=expect), holds=lambda *_: False)
    assert recording.failure is None
    assert recording.steps[0].result == []


async def test_inspect_files_tells_what_changed_and_where_a_text_is(go):
    recording = await go(
        step("inspect", what="files"),
        add("the fox"),
        step("inspect", what="files", search_for=["fox", "bear"]),
    )
    before, _, after = (record.result for record in recording.steps)
    assert before["files"] == []
    assert [file["path"] for file in after["files"]] == ["oracle.index", "oracle.json"]
    assert after["containing"] == {"fox": ["oracle.json"], "bear": []}
    assert before["digest"] != after["digest"]


async def test_announced_tools_and_what_the_target_says_of_itself_are_recorded(go):
    class Talker(Oracle):
        async def tools(self):
            return [ToolSchema(name="t", description="", parameters={})]

        async def say(self, text, scope):
            return Turn(answer=text.upper())

    recording = await go(step("say", text="hi"), factory=ToyFactory(Talker, able=["tool.schema"]))
    assert [tool.name for tool in recording.tools] == ["t"]
    assert recording.about["memory"].startswith("oracle")
    assert recording.steps[0].result["answer"] == "HI"


async def test_options_of_the_story_win_over_those_of_the_run(go):
    seen = {}

    class Curious(Oracle):
        async def open(self, env, clock):
            seen.update(env.options)
            await super().open(env, clock)

    await go(
        add("x"), factory=ToyFactory(Curious), options={"k": 1}, run_options={"target": {"k": 2, "chat": "offline"}}
    )
    assert seen == {"k": 1, "chat": "offline"}


async def test_the_same_seed_gives_the_same_recording_but_for_the_time(go):
    first = await go(add("x", save={"a": "items.0.id"}), trial=3)
    second = await go(step("delete"), add("x", save={"a": "items.0.id"}), trial=3)
    assert first.steps[0].user == second.steps[0].user


async def test_a_crash_kills_the_process_and_keeps_what_was_acknowledged(go):
    recording = await go(add("kept"), step("crash"), step("list"), factory=OracleFactory())
    assert recording.failure is None
    assert [hit["text"] for hit in recording.steps[2].result] == ["kept"]


async def test_another_process_has_the_memory_open_and_finds_what_this_one_adds_later(go):
    look = step("other_process", step("list"))
    recording = await go(add("first"), look, add("second"), look, factory=OracleFactory())
    assert recording.failure is None
    found = [[hit["text"] for hit in one.result] for one in recording.steps if one.op == "list"]
    assert found == [["first"], ["first", "second"]]


async def test_a_restart_ends_the_other_process_too(go):
    look = step("other_process", step("list"))
    recording = await go(add("kept"), look, step("restart"), look, factory=OracleFactory())
    assert recording.failure is None
    assert [hit["text"] for hit in recording.steps[-2].result] == ["kept"]


async def test_what_breaks_in_the_other_process_is_placed_there(go):
    recording = await go(add("x"), step("other_process", step("list"), step("say", text="hi")), factory=OracleFactory())
    assert recording.failure.kind == "unsupported"
    assert recording.failure.step == (1, 1)


async def test_a_crash_in_the_middle_leaves_the_step_without_a_record_or_acknowledged(go):
    steps = [add(f"n{number}") for number in range(40)]
    recording = await go(step("crash", *steps), step("list"), factory=OracleFactory())
    assert recording.failure is None
    acknowledged = {record.result["items"][0]["text"] for record in recording.steps if record.op == "add"}
    assert acknowledged <= {hit["text"] for hit in recording.steps[-1].result}
    assert len(acknowledged) < 40


async def test_a_crash_on_a_target_that_names_no_spec_is_unsupported(go):
    recording = await go(step("crash"), factory=ToyFactory())
    assert recording.failure.kind == "unsupported"
    assert "its own process" in recording.failure.message


async def test_a_refusal_of_bad_input_by_any_target_is_a_result(go):
    class Strict(Oracle):
        async def add(self, items, scope):
            if not items[0].text:
                raise Refused("empty text")
            return Receipt(items=(ReceiptItem(id="1", text=items[0].text),))

    recording = await go(add("", save={"it": "items.0.id"}), add("x"), factory=ToyFactory(Strict))
    assert [record.error for record in recording.steps] == ["empty text", None]
    assert recording.steps[0].names == {"it": None}


async def test_the_oracle_updates_by_key_and_keeps_scopes_apart(tmp_path):
    oracle = Oracle()
    await oracle.open(Environment(workspace=str(tmp_path), owner="o"), StoryClock())
    ann, bob = Scope(user="ann"), Scope(user="bob")
    first = await oracle.add([Item(text="tabs", key="indent")], ann)
    second = await oracle.add([Item(text="spaces", key="indent")], ann)
    assert first.items[0].id == second.items[0].id
    assert second.items[0].outcome == "updated"
    assert await oracle.list(bob) == []


class Declining(Oracle):
    """Refuses any model but its own."""

    async def open(self, env, clock):
        if env.other_embedder:
            raise Refused("another model made this")
        await super().open(env, clock)


class Unmoved(Oracle):
    """Keeps its model, whatever the story says."""

    async def open(self, env, clock):
        await super().open(replace(env, other_embedder=False), clock)


@pytest.mark.parametrize(("kind", "error"), [(Oracle, None), (Declining, "another model made this")])
async def test_a_memory_that_refuses_another_embedder_is_opened_with_its_own_again(go, kind, error):
    steps = add("kept"), step("restart", embedder="other"), step("list"), step("restart"), step("list")
    recording = await go(*steps, factory=ToyFactory(kind))
    assert recording.failure is None
    assert recording.steps[1].error == error
    assert [[hit["text"] for hit in recording.steps[number].result] for number in (2, 4)] == [["kept"], ["kept"]]


async def test_another_embedder_that_a_target_does_not_take_is_an_error(go):
    recording = await go(add("x"), step("restart", embedder="other"), factory=ToyFactory(Unmoved))
    assert recording.failure.kind == "error"
    assert "the other embedder did not land" in recording.failure.message


class Gone(HostedTarget):
    """Ended in some way before anybody killed it."""

    how = None

    async def kill(self):
        await super().kill()
        return self.how


@pytest.mark.parametrize(
    ("how", "said"),
    [(None, "there was no process"), (" with exit code 3", "ended by itself with exit code 3"),
     (" by signal 11 (Segmentation fault)", "ended by itself by signal 11")],
)  # fmt: skip
async def test_a_crash_of_what_had_ended_by_itself_is_an_error(tmp_path, how, said):
    stage = open_stage(Environment(workspace=str(tmp_path / "w"), owner="ann"), OracleFactory(), hosted=True)
    stage.target = Gone(OracleFactory(), tmp_path / "host")
    stage.target.how = how
    with pytest.raises(TargetError, match=f"the crash did not land: .*{said}"):
        await stage.kill()
