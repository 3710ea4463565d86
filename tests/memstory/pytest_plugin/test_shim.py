"""A run on a target that does not chat, with a chat model that a package offers."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]

CHAT = """
from memstory.contract.models import Reply, ToolRequest
from memstory.controls import OracleFactory


class Plain(OracleFactory):
    name, spec = "plain", "toy_chat:Plain"


class Model:
    name = "toy (stand-in)"

    def __init__(self, more):
        self.more = more

    async def chat(self, request):
        last = request.messages[-1]
        if last.role == "tool":
            return Reply(content=last.content)
        return Reply(content="", tool_requests=[ToolRequest(name="search_memory", arguments={"query": last.content})])

    async def close(self):
        with open("closed.txt", "a") as log:
            log.write(f"closed {self.more}\\n")
"""

TALK = """
story: T1
title: What was said comes back in another session
steps:
  - say: The kiln is blue.
  - new_session:
  - say: which kiln
    expect:
      tool_calls: [search_memory]
      answer: {contains: blue}
---
story: T2
title: Nothing is made up
steps:
  - say: which kiln
    expect: {answer: {contains: No memories}}
"""


@pytest.fixture
def talking(project):
    project.pytester.makepyfile(toy_chat=CHAT)
    told = project.path / "toy_chat-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-chat\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[memstory.chat_models]\ntoy = toy_chat:Model\n")
    project.story(TALK)
    return project


def test_a_target_that_does_not_chat_is_talked_with_and_every_report_says_so(talking):
    result = talking.run_apart("--target", "toy_chat:Plain", "--chat", "toy:x")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*shim: toy (stand-in)*"])
    folder = talking.path / "reports/latest"
    document = json.loads((folder / "results.json").read_text("utf-8"))
    assert document["fingerprint"]["targets"]["toy_chat:Plain"]["chat"] == ["shim: toy (stand-in)"]
    assert document["fingerprint"]["options"] == {"chat": "toy:x"}
    assert "shim: toy (stand-in)" in (folder / "report.md").read_text("utf-8")
    assert (talking.path / "closed.txt").read_text("utf-8") == "closed x\n"


def test_it_is_talked_with_in_a_process_of_its_own_too(talking):
    talking.run_apart("--target", "toy_chat:Plain", "--chat", "toy", "--isolate").assert_outcomes(passed=2)


def test_a_model_that_nobody_offers_ends_the_run_before_it_begins(talking):
    result = talking.run_apart("--target", "toy_chat:Plain", "--chat", "tpy")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*no chat model is named 'tpy'. Did you mean 'toy'?*"])


def test_the_model_is_no_option_of_targets_that_none_is_offered_to(talking):
    result = talking.run_apart("--target", "control:oracle", "--chat", "toy")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*no option 'chat' in the targets control:oracle*"])
