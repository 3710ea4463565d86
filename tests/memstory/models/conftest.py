"""A chat model that says what a test has written, and a memory to talk for."""

from __future__ import annotations

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.models import Reply, ToolRequest
from memstory.contract.target import Environment
from memstory.controls import OracleFactory


class Written:
    """Replies in the order in which they were written; a call is written as (name, arguments)."""

    name = "written (stand-in)"

    def __init__(self, *replies):
        self.replies = list(replies)
        self.asked = []
        self.closed = 0

    async def chat(self, request):
        self.asked.append(([message.content for message in request.messages], [tool.name for tool in request.tools]))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            return Reply(content=reply)
        return Reply(content="", tool_requests=[ToolRequest(name=name, arguments=args) for name, args in reply])

    async def close(self):
        self.closed += 1


@pytest.fixture
def written():
    return Written


@pytest.fixture
async def oracle(tmp_path):
    target = OracleFactory().target()
    await target.open(Environment(workspace=str(tmp_path), owner="ann"), StoryClock())
    return target
