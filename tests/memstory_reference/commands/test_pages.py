"""The commands on the pages about the terminal exist, with these options."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest

from memstory_reference.cli import COMMANDS, make_parser
from memstory_reference.commands.chat import Conversation

PAGES = Path(__file__).parents[3] / "docs/how-to"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    lines = [line for page in sorted(PAGES.glob("*.md")) for block in BLOCK.findall(page.read_text("utf-8"))
             for line in block.splitlines()]  # fmt: skip
    return [line[line.index("memstory-reference") :] for line in lines if "memstory-reference " in line]


def test_the_pages_show_commands():
    assert len(commands()) >= 9


@pytest.mark.parametrize("command", commands())
def test_a_command_of_a_page_is_understood(command):
    assert make_parser().parse_args(shlex.split(command)[1:]).command in COMMANDS


def test_the_page_about_talking_names_every_command_of_the_conversation():
    page = (PAGES / "chat.md").read_text("utf-8")
    names = re.findall(r'"(/\w+)', inspect.getsource(Conversation.commands))
    assert len(names) == 12
    assert [name for name in names if name not in page] == []
