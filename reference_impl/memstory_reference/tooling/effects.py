"""What a tool does to the memory is its class; a model sees of each what it sees of any tool."""

from __future__ import annotations

from memstory.contract.values import ToolSchema

# Classes and not a field: fields of a tool are in every recording and in the digest of every request.


class ReadTool(ToolSchema):
    """A tool that looks something up and changes no memory."""


class AddTool(ToolSchema):
    """A tool that adds a memory and loses no earlier one; the same call again may add another."""


class ChangeTool(ToolSchema):
    """A tool that replaces an earlier value, or deletes it for good; the same call again changes no more."""
