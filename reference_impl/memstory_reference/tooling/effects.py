"""What a tool does to the memory is its class; a model sees of each what it sees of any tool."""

from __future__ import annotations

from memstory.contract.values import ToolSchema

# Classes and not a field: fields of a tool are in every recording and in the digest of every request.


class ReadTool(ToolSchema):
    """A tool that looks something up and changes no memory."""


class SaveTool(ToolSchema):
    """A tool that saves or updates a memory."""


class ForgetTool(ToolSchema):
    """A tool that deletes for good; the same call again deletes no more."""
