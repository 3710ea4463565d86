import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.cli import main
from memstory.commands.authoring.chat_story import ChatTurn, story_of_chat, turns_of
from memstory.contract.errors import SetupError
from memstory.language.stories import parse_stories
from memstory.language.story import Story

CHAT = """user: I have two kids, Tomas and Lea.
assistant: Lovely!
User: Lea is allergic to hazelnuts.
  Really.
assistant: Noted.
user: Who must not eat nuts?
assistant: Lea, she is allergic to hazelnuts.
"""


def story(turns):
    (only,) = parse_stories(story_of_chat(turns, "kids"), "f.yaml")
    assert isinstance(only, Story), only
    return only


def test_each_turn_of_the_user_is_a_step_and_a_reply_that_repeats_an_earlier_one_is_expected():
    made = story(turns_of(CHAT, "chat.txt"))
    assert [step.op for step in made.steps] == ["say"] * 3
    assert made.steps[1].args["text"] == "Lea is allergic to hazelnuts.\n  Really."
    assert [bool(step.expect) for step in made.steps] == [False, False, True]
    assert '{any: [{icontains: "Lea"}' in story_of_chat(turns_of(CHAT, "chat.txt"), "kids")


@pytest.mark.parametrize("form", ["list", "messages", "lines", "parts"])
def test_messages_are_read_in_the_forms_that_tools_export(form):
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]
    if form == "parts":
        messages[1]["content"] = [{"type": "text", "text": "hello"}]
    text = "\n".join(map(json.dumps, messages)) if form == "lines" else json.dumps(
        {"messages": messages} if form == "messages" else messages)  # fmt: skip
    assert turns_of(text, "chat.json") == [ChatTurn("user", "hello")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no turn of a user"),
        ("hello there", "no turn of a user"),
        ('{"role": "user"', "not JSON"),
        ("[1]", "no 'role'"),
    ],
)
def test_a_file_that_is_no_chat_is_refused_with_what_to_write(text, said):
    with pytest.raises(SetupError, match=said) as refused:
        turns_of(text, "chat.txt")
    assert "'role' and 'content'" in str(refused.value)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant"]),
            st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"]), min_size=1),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_was_said_the_story_says_it_word_for_word(said):
    turns = [ChatTurn(role, text.strip() or "x") for role, text in [*said, ("user", "end")]]
    made = story(turns)
    assert [step.args["text"] for step in made.steps] == [turn.text for turn in turns if turn.role == "user"]


def test_the_command_writes_a_story_of_a_chat(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.txt").write_text(CHAT)
    assert main(["new", "story", "kids", "--from-chat", "chat.txt"]) == 0
    assert main(["validate", "kids.story.yaml"]) == 0
    assert main(["new", "target", "kids", "--from-chat", "chat.txt"]) == 2
    assert main(["new", "story", "other", "--from-chat", "nowhere.txt"]) == 2
    assert "nowhere.txt cannot be read" in capsys.readouterr().err
