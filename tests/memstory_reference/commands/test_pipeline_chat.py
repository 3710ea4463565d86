import json
from pathlib import Path

import pytest

SAVED = "Please remember my preferred language is Elixir."
PIPELINE = ("--system", "pipeline")


@pytest.fixture
def talk(typed):
    return lambda *lines, options=(): typed("chat", *PIPELINE, *options, lines=lines)


def test_a_fact_is_there_in_the_next_conversation(talk):
    assert talk(SAVED).code == 0
    ran = talk("What language do I prefer?")
    assert (ran.code, "semantic 1" in ran.out) == (0, True)
    assert "Elixir" in ran.out.splitlines()[-1]
    assert Path(".pipeline").is_dir()


def test_what_the_user_tells_is_taken_in_and_what_the_user_asks_is_not(talk, typed):
    talk("My cat is called Tom.", "I prefer dark mode.", *["What do I hate?"] * 3)
    rows = json.loads(typed("memory", "list", *PIPELINE, "--json").out)
    assert sorted(row["text"].rstrip(".") for row in rows) == ["I prefer dark mode", "My cat is called Tom"]


def test_what_is_forgotten_in_talk_is_forgotten_in_the_next_conversation_too(talk):
    talk("My cat is called Tom.", SAVED)
    assert "forgotten" in talk("Forget my cat, please").out
    ran = talk("What is my cat called?", "What do you know about me?")
    assert "Tom" not in ran.out
    assert "Elixir" in ran.out.splitlines()[-1]


def test_with_a_value_that_is_forgotten_goes_the_one_that_it_had_replaced(talk):
    talk("My manager is Ann.", "My manager is Ben now.")
    ran = talk("Who is my manager?", "Please forget that my manager is Ben.")
    assert '"My manager is Ben now".' in ran.out
    ran = talk("Who is my manager?", "What do you know about me?")
    assert ran.out.count("don't know") == 2


def test_forget_takes_what_was_replaced_and_what_says_the_same(talk):
    talk("I prefer tabs", "I prefer spaces", "Ilse lives in Graz.", "As I said, Ilse still lives in Graz, near Tom.")
    out = talk("/list", "/forget prefer:indentation", "/list", "/search Ilse").out
    assert "Forgotten: prefer:indentation, and 1 more that say it." in out
    assert "tabs" not in out.partition("Forgotten:")[2] + talk("/list").out
    ran = talk("/list semantic")
    name = next(line.split()[0] for line in ran.out.splitlines() if line.endswith("Ilse lives in Graz"))
    gone = talk(f"/forget {name}", "/list", "/search Graz").out.partition("Forgotten: ")[2]
    assert "and 1 more that say it" in gone
    assert "No memories found." in gone


def test_a_secret_is_left_out_and_the_user_is_told(talk, typed):
    ran = talk("Please remember that my card is 4111 1111 1111 1111.")
    assert "payment card" in ran.out
    listed = typed("memory", "list", *PIPELINE).out
    assert "my card is [left out: the number of a payment card]" in listed
    assert "4111" not in listed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/forget", "say what"),
        ("/forget nothing", "nothing is remembered under 'nothing'"),
        ("/search", "what to look for"),
        ("/list dreams", "procedural, working, semantic, episodic"),
    ],
)
def test_a_wrong_command_says_what_is_right(talk, line, message):
    ran = talk(line)
    assert (ran.code, message in ran.out) == (1, True)


def test_the_memory_command_works_on_the_pipeline(talk, typed):
    assert "no memory is stored here" in typed("memory", "list", *PIPELINE).err
    talk("I prefer tabs", "I prefer spaces", "Ilse lives in Graz.")
    assert "I prefer tabs" not in typed("memory", "list", *PIPELINE).out
    assert "I prefer tabs" in typed("memory", "list", *PIPELINE, "--archived").out
    assert "Ilse lives in Graz" in typed("memory", "search", "Ilse", *PIPELINE).out.splitlines()[2]
    assert "replaced 1" in typed("memory", "status", *PIPELINE).out
    assert len(typed("memory", "export", *PIPELINE).out.splitlines()) == 3
    assert typed("memory", "forget", "prefer:indentation", "--yes", *PIPELINE).out == "Forgotten: 2.\n"
    for action in (("archive", "x" * 8), ("purge",), ("rate", "x" * 8, "1")):
        assert typed("memory", *action, *PIPELINE).code == 1
    assert typed("memory", "forget", "--all", "--yes", *PIPELINE).out == "Forgotten: 1.\n"
