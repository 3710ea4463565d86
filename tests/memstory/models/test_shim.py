"""Who gets the shim, how a case runs through it, and that a report cannot take its talk for the backend's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memstory.case import Case
from memstory.contract.errors import Mark, SetupError, StoryError
from memstory.contract.target import Receipt, TargetFactory, Turn
from memstory.controls import Oracle, OracleFactory
from memstory.language.story import Step, Story
from memstory.models.loading import GROUP, check_model_name
from memstory.models.shim import Chats
from memstory.running.runner import RunOptions, run

MARK = Mark("stories/x.yaml", 3, 1)
TALK = frozenset({"chat", "chat.tools"})
SAVE = [("memory_save", {"topic": "user.name", "content": "Ilse"})]
RECALL = [("memory_recall", {"topic": "user.name"})]


WITHOUT_EXTRAS = """
import asyncio, sys
sys.modules.update(dict.fromkeys(["chromadb", "httpx", "numpy", "onnxruntime", "tokenizers"]))
from memstory.contract.models import ChatRequest, Message
from memstory.models.loading import load_model
model = load_model("offline")
print(asyncio.run(model.chat(ChatRequest([Message(role="user", content="Hello!")]))).content)
"""


class Plain(OracleFactory):
    """A perfect memory that is not a control by its name, and so gets the shim."""

    name = "plain"
    spec = "memstory.controls:OracleFactory"


def no_offers(group):
    assert group == GROUP
    return []


def say(text):
    return Step(op="say", args={"text": text}, mark=MARK)


def step(op, **args):
    return Step(op=op, args=args, mark=MARK)


@pytest.fixture
def talk(tmp_path):
    async def go(model, *steps, factory=None, needs=TALK, options=None, target="plain", **more):
        story = Story(id="T1", title="a talk", mark=MARK, digest="d", steps=steps, needs=needs, options=options or {})
        chats = Chats({"offline": model}) if model else None
        running = RunOptions(chats=chats, **more)
        return await run(Case(story=story, target=target), factory or Plain(), tmp_path / "work", running)

    return go


def answers(recording):
    return [record.result["answer"] for record in recording.steps if record.op == "say"]


async def test_a_backend_without_chat_is_talked_with_and_the_recording_says_by_whom(talk, written):
    recording = await talk(written(SAVE, "saved", RECALL, "Ilse"), say("I am Ilse."), say("Who am I?"),
                           options={"toolset": "dual"}, needs=TALK | {"option.toolset"})  # fmt: skip
    assert recording.failure is None
    assert recording.about["chat"] == "shim: written (stand-in)"
    assert recording.about["memory"].startswith("oracle")
    assert recording.steps[1].result["tool_calls"][0]["result"] == "[Memory: user.name] Ilse"
    assert [tool.name for tool in recording.tools] == ["memory_recall", "memory_save"]


async def test_a_story_that_does_not_talk_never_meets_the_shim(talk, written):
    model = written()
    recording = await talk(model, step("search", query="x"), needs=frozenset({"search"}))
    assert recording.failure is None
    assert "chat" not in recording.about
    assert model.asked == []


async def test_a_backend_that_chats_itself_never_gets_the_shim(talk, written):
    class Talker(Oracle):
        async def say(self, text, scope):
            return Turn(answer="my own words")

    class TalkerFactory(TargetFactory):
        def capabilities(self, options):
            return frozenset({"add", "search"}) | TALK

        def target(self):
            return Talker()

    model = written()
    recording = await talk(model, say("hello"), factory=TalkerFactory())
    assert answers(recording) == ["my own words"]
    assert model.asked == []


@pytest.mark.parametrize(("target", "able"), [("control:oracle", {"add", "search"}), ("plain", {"add"})])
async def test_controls_and_backends_that_cannot_search_stay_unsupported(talk, written, target, able):
    class Some(Plain):
        def capabilities(self, options):
            return frozenset(able)

    recording = await talk(written(), say("hello"), factory=Some(), target=target)
    assert recording.failure.kind == "unsupported"


async def test_a_restart_takes_the_conversation_and_leaves_what_the_backend_holds(talk, written):
    model = written(SAVE, "saved", RECALL, "Ilse")
    recording = await talk(model, say("I am Ilse."), step("restart"), say("Who am I?"),
                           options={"toolset": "dual"}, needs=TALK | {"option.toolset", "restart"})  # fmt: skip
    assert answers(recording) == ["saved", "Ilse"]
    assert model.asked[2][0][1:] == ["Who am I?"]


async def test_a_backend_in_a_process_of_its_own_is_killed_and_talked_with_again(talk, written):
    model = written(SAVE, "saved", RECALL, "Ilse")
    recording = await talk(model, say("I am Ilse."), step("crash"), say("Who am I?"), hosted=True,
                           options={"toolset": "dual"}, needs=TALK | {"option.toolset", "crash"})  # fmt: skip
    assert recording.failure is None
    assert recording.steps[2].result["tool_calls"][0]["result"] == "[Memory: user.name] Ilse"
    assert model.asked[2][0][1:] == ["Who am I?"]


async def test_a_memory_that_forgets_gives_the_model_nothing(talk, written):
    class Amnesiac(Oracle):
        async def add(self, items, scope):
            return Receipt()

    class AmnesiacFactory(Plain):
        def target(self):
            return Amnesiac()

    recording = await talk(written(SAVE, "saved", RECALL, ""), say("I am Ilse."), say("Who am I?"),
                           factory=AmnesiacFactory(), options={"toolset": "dual"},
                           needs=TALK | {"option.toolset"})  # fmt: skip
    assert answers(recording)[1] == "No memory is kept under 'user.name'."


async def test_the_backend_never_sees_the_options_of_the_shim_unless_it_has_them_too(talk, written):
    seen = []

    class Watchful(Oracle):
        async def open(self, env, clock):
            seen.append(dict(env.options))
            await super().open(env, clock)

    class WatchfulFactory(Plain):
        def capabilities(self, options):
            return frozenset({"add", "search", "option.k", "option.toolset"})

        def target(self):
            return Watchful()

    recording = await talk(written("hi"), say("hello"), factory=WatchfulFactory(),
                           options={"toolset": "dual", "chat": "offline", "k": 3})  # fmt: skip
    assert recording.failure is None
    assert seen == [{"toolset": "dual", "k": 3}]


async def test_a_toolset_that_there_is_not_is_the_storys_mistake(talk, written):
    recording = await talk(written(), say("hello"), options={"toolset": "duel"})
    assert recording.failure.kind == "invalid"
    assert "Did you mean 'dual'?" in recording.failure.message


async def test_a_backend_that_breaks_inside_a_tool_breaks_the_case(talk, written):
    class Broken(Oracle):
        async def search(self, query, scope):
            raise ConnectionResetError("the server went away")

    class BrokenFactory(Plain):
        def target(self):
            return Broken()

    recording = await talk(written([("memory_recall", {"query": "x"})]), say("hello"), factory=BrokenFactory(),
                           options={"toolset": "dual"})  # fmt: skip
    assert recording.failure.kind == "error"
    assert "the server went away" in recording.failure.message


async def test_a_tool_that_the_backend_cannot_do_makes_the_case_unsupported_and_says_why(talk, written):
    class Keyless(Plain):
        def capabilities(self, options):
            return frozenset({"add", "search"})

    recording = await talk(written(SAVE), say("I am Ilse."), factory=Keyless(), options={"toolset": "dual"})
    assert recording.failure.kind == "unsupported"
    assert "'add.key'" in recording.failure.message


def test_a_model_that_nobody_offers_is_named_with_those_that_are(monkeypatch):
    monkeypatch.setattr("memstory.contract.installation.entry_points", no_offers)
    with pytest.raises(SetupError, match=r"no chat model is named 'gpt'.*none is installed"):
        check_model_name("gpt")


async def test_without_the_usual_model_a_talk_is_unsupported_but_a_chosen_one_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setattr("memstory.contract.installation.entry_points", no_offers)
    story = Story(id="T1", title="a talk", mark=MARK, digest="d", steps=(say("hello"),), needs=TALK)
    case = Case(story=story, target="plain")
    usual = await run(case, Plain(), tmp_path, RunOptions(chats=Chats()))
    assert (usual.failure.kind, "does not chat" in usual.failure.message) == ("unsupported", True)
    chosen = await run(case, Plain(), tmp_path, RunOptions(chats=Chats(), target={"chat": "gpt"}))
    assert (chosen.failure.kind, "'gpt'" in chosen.failure.message) == ("error", True)


async def test_models_are_closed_once_with_the_worker(written):
    model = written()
    chats = Chats({"offline": model})
    able = frozenset({"add", "search"})
    assert chats.shim(able, {}).model is chats.shim(able, {"chat": "offline"}).model
    await chats.close()
    assert model.closed == 1


def test_a_wrong_toolset_is_found_before_a_model_is_loaded():
    with pytest.raises(StoryError):
        Chats().shim(frozenset({"add", "search"}), {"toolset": 7})


def test_the_stand_in_talks_where_no_extra_is_installed():
    talk = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, check=False)  # noqa: S603
    assert (talk.returncode, talk.stderr) == (0, "")
    assert talk.stdout.startswith("Hello")
