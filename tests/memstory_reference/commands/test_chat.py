from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from memstory.contract.models import ChatModelUnavailableError, Reply
from memstory_reference.composition import chat_models
from memstory_reference.ports import NoRespondersError

SAVED = "Please remember my preferred language is Elixir."
ASKED = "What language do I prefer?"


@pytest.fixture
def model(monkeypatch):
    """Put a chat model in the place of the one that is chosen."""

    def put(chat_function):
        class Model:
            name = "made for a test"

            async def chat(self, request):
                return await chat_function(request.messages[-1].content, made["on_text"])

        made = {}

        def make(*_, **options):
            made.update(options)
            return Model()

        monkeypatch.setattr(chat_models, "make_chat", make)

    return put


def test_a_fact_is_there_in_the_next_conversation(typed):
    assert typed("chat", lines=[SAVED]).code == 0
    ran = typed("chat", lines=[ASKED])
    assert ran.code == 0
    assert "topics 1, episodic 1." in ran.out
    assert "Elixir" in ran.out.splitlines()[-1]
    assert Path(".chroma").is_dir()


def test_the_start_says_who_answers_and_that_it_is_a_stand_in(typed):
    lines = typed("chat").out.splitlines()
    assert lines[1] == "Answers come from: offline rules (deterministic stand-in)."
    assert "no language model is behind it" in lines[2]


def test_tool_calls_and_their_results_stand_between_question_and_answer(typed):
    out = typed("chat", "--toolset", "dual", lines=[SAVED]).out.splitlines()
    call = out.index('  → memory_save(topic="user.language_preference", content="Elixir")')
    assert out[call + 1] == "  ← Memory saved: user.language_preference"
    assert "remember" in out[call + 2]


def test_owners_do_not_meet(typed):
    typed("chat", "--owner", "ann", lines=[SAVED])
    assert "Elixir" not in typed("chat", "--owner", "bob", lines=[ASKED, "/list topic", "/search Elixir"]).out


def test_topics_search_and_forget_work_on_the_memory_itself(typed):
    out = typed(
        "chat", lines=[SAVED, "/list topic", "/search preferred language", "/forget user.language_preference"]
    ).out
    assert "user.language_preference  20" in out
    assert "Q: Please remember my preferred language is Elixir." in out
    assert "Forgotten: user.language_preference, and 1 more that say it." in out
    assert "Nothing is remembered." in typed("chat", lines=["/list topic"]).out


def test_an_engram_is_forgotten_by_the_id_that_search_shows(typed):
    found = typed("chat", lines=["The relay is blue.", "/search relay is blue"]).out.splitlines()[-1]
    name = found.split()[1]
    assert f"Forgotten: {name}." in typed("chat", lines=[f"/forget {name}"]).out
    assert "No memories found." in typed("chat", lines=["/search relay is blue"]).out


def test_a_new_session_does_not_see_the_conversation_so_far(typed, model):
    seen = []

    async def remember(said, _):
        seen.append(said)
        return Reply(content="Well.")

    model(remember)
    out = typed("chat", lines=["One.", "/new", "Two."]).out
    assert "A new session." in out
    assert seen == ["One.", "Two."]
    engrams = map(json.loads, typed("memory", "export").out.splitlines())
    assert len({engram["metadata"]["session_id"] for engram in engrams}) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/lst", "Did you mean '/list'?"),
        ("/unheard", "There are: /list, /search, /forget, /context, /status, /good, /bad, /run, /new, /help, /quit"),
        ("/search", "say what to look for"),
        ("/forget", "say what"),
        ("/forget user.nothing", "nothing is remembered under 'user.nothing'"),
    ],
)
def test_a_wrong_command_says_what_is_right_and_the_conversation_goes_on(typed, line, said):
    ran = typed("chat", lines=[line, "Hello"])
    assert said in next(shown for shown in ran.out.splitlines() if shown.startswith("! "))
    assert not ran.out.splitlines()[-1].startswith("!")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_a_failing_turn_shows_at_the_terminal_and_in_a_scripts_exit_code(typed, model):
    async def fail(*_):
        raise ChatModelUnavailableError("nothing answers. Start it with: ollama serve")

    model(fail)
    piped = typed("chat", lines=["Hello"])
    assert piped.code == 1
    assert piped.out.endswith("! nothing answers. Start it with: ollama serve\n")
    assert typed("chat", lines=["Hello"], at_terminal=True).code == 0


def test_quit_ends_before_the_input_does(typed):
    ran = typed("chat", lines=["/help", "/quit", SAVED])
    assert "/forget WHAT" in ran.out
    assert "Elixir" not in ran.out


def test_a_pipe_is_shown_no_prompt_and_a_terminal_is(typed):
    assert "you> " not in typed("chat", lines=["Hello"]).out
    assert typed("chat", lines=["Hello"], at_terminal=True).out.count("you> ") == 2


def test_a_streamed_answer_is_printed_once(typed, model):
    async def stream(_, on_text):
        for part in ("Good ", "evening."):
            on_text(part)
        return Reply(content="Good evening.")

    model(stream)
    assert typed("chat", lines=["Hello"]).out.splitlines()[-1] == "Good evening."


def test_the_memory_keeps_what_was_said_before_the_conversation_ended(typed):
    typed("chat", lines=["The relay is blue."])
    assert "The relay is blue." in typed("memory", "list").out


def test_ctrl_c_stops_the_answer_and_not_the_conversation(typed, model):
    async def answer(said, _):
        if said == "Wait":
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return Reply(content=f"You said {said}")

    model(answer)
    ran = typed("chat", lines=["Wait", "Hello"], at_terminal=True)
    assert "(stopped; Ctrl-D ends the conversation)" in ran.out
    assert "You said Hello" in ran.out
    assert ran.code == 0


def test_ctrl_c_ends_a_script(typed, model):
    async def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    model(interrupted)
    assert typed("chat", lines=["Wait", "Hello"]).code == 130
    assert typed("memory", "list").code == 0


def test_what_is_remembered_cannot_steer_the_terminal(typed, model):
    async def steer(*_):
        return Reply(content="red \x1b[31m\rdone")

    model(steer)
    assert typed("chat", lines=["Hello"]).out.splitlines()[-1] == "red \ufffd[31mdone"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--chat", "eliza"], "no chat model named 'eliza'"),
        (["--owner", " "], "owner is blank"),
        (["--store", ""], "chroma_path is ''"),
        (["--settings", "none.yaml"], "none.yaml: cannot be read"),
    ],
)
def test_a_wrong_option_is_one_line_and_makes_no_store(typed, arguments, said):
    ran = typed("chat", *arguments)
    assert ran.code == 1
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("system", ["topics", "manager", "pipeline", "turns"])
@pytest.mark.parametrize("command", [("chat",), ("memory", "list")])
def test_an_empty_owner_is_nobody_and_never_the_shared_one(typed, system, command):
    typed("chat", "--system", system, lines=["My name is Ana."])
    ran = typed(*command, "--system", system, "--owner", "", lines=["What is my name?"])
    assert ran.code == 1
    assert "Ana" not in ran.out
    assert "''" in ran.err or "blank" in ran.err


def test_settings_of_a_file_hold_and_options_win(typed):
    Path("mine.yaml").write_text("chroma_path: one\ntoolset: dual\n", "utf-8")
    assert "memory_save(" in typed("chat", "--settings", "mine.yaml", lines=[SAVED]).out
    typed("chat", "--settings", "mine.yaml", "--store", "two", lines=[SAVED])
    assert sorted(path.name for path in Path().iterdir()) == ["mine.yaml", "one", "two"]


def test_what_is_forgotten_does_not_come_back_in_another_session_or_after_a_restart(typed):
    lines = ["I have two kids, Tomas and Lea.", "How many kids do I have?", "/forget user.two_kid_toma_lea"]
    out = typed("chat", lines=[*lines, "How many kids do I have?", "/new", "How many kids do I have?"]).out
    assert "Forgotten: user.two_kid_toma_lea, and 2 more that say it." in out
    assert "Tomas" not in out.partition("Forgotten:")[2]
    assert "Tomas" not in typed("chat", lines=["How many kids do I have?"]).out


def test_who_else_mentions_what_is_forgotten_is_listed_with_ids(typed):
    out = typed("chat", lines=["My name is Carla.", "Carla Bruni sang at the Musikverein.", "/forget user.name"]).out
    assert "These mention it too; /forget with an id forgets one:" in out
    assert "Carla Bruni" in out.partition("These mention it too")[2]


def test_the_last_answer_is_rated(typed):
    assert "there is none yet" in typed("chat", lines=["/good"]).out
    assert "Rated." in typed("chat", lines=["The relay is blue.", "/good"]).out
    rows = typed("memory", "list", "--json").out
    assert '"reward": 1' in rows


class SilentBus:
    """A bus on which nobody serves."""

    def __init__(self, _):
        pass

    async def request(self, *_, **__):
        raise NoRespondersError


def test_a_conversation_on_a_bus_where_nobody_serves_says_who_is_missing(typed, monkeypatch):
    monkeypatch.setattr("memstory_reference.commands.chat.BriefBus", SilentBus)
    ran = typed("chat", "--bus", "nats://h", "--owner", "ann")
    assert ran.out.splitlines()[:3] == [
        "The memory of ann in the processes on the bus.",
        "! no process serves memory. Start one: memstory-reference serve memory",
        "! no process serves agent. Start one: memstory-reference serve agent",
    ]
