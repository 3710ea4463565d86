"""Stories and evaluation for the memory of AI agents.

What is listed here is what other code may import, and all that is promised to stay. Each name is imported when it is
first asked for, since pytest imports this package in every project.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from memstory.conformance import TargetContract
    from memstory.contract.clock import Clock, Stopwatch
    from memstory.contract.errors import (
        Mark,
        MemstoryError,
        MissingValue,
        NotSupported,
        Refused,
        SetupError,
        StoryError,
        TargetError,
    )
    from memstory.contract.target import Target, TargetFactory
    from memstory.contract.values import (
        Capability,
        Environment,
        Hit,
        Item,
        Json,
        Query,
        Receipt,
        ReceiptItem,
        Ref,
        Scope,
        ToolCall,
        ToolSchema,
        Turn,
    )
    from memstory.language.stories import InvalidStory, load_stories, parse_stories
    from memstory.language.story import Story
    from memstory.playing import play
    from memstory.results.outcomes import CaseResult
    from memstory.running.runner import RunOptions

__all__ = [
    "Capability",
    "CaseResult",
    "Clock",
    "Environment",
    "Hit",
    "InvalidStory",
    "Item",
    "Json",
    "Mark",
    "MemstoryError",
    "MissingValue",
    "NotSupported",
    "Query",
    "Receipt",
    "ReceiptItem",
    "Ref",
    "Refused",
    "RunOptions",
    "Scope",
    "SetupError",
    "Stopwatch",
    "Story",
    "StoryError",
    "Target",
    "TargetContract",
    "TargetError",
    "TargetFactory",
    "ToolCall",
    "ToolSchema",
    "Turn",
    "load_stories",
    "parse_stories",
    "play",
]

_NAMES: Final = {
    "memstory.conformance": "TargetContract",
    "memstory.contract.clock": "Clock Stopwatch",
    "memstory.contract.errors": (
        "Mark MemstoryError MissingValue NotSupported Refused SetupError StoryError TargetError"
    ),
    "memstory.contract.target": "Target TargetFactory",
    "memstory.contract.values": (
        "Capability Environment Hit Item Json Query Receipt ReceiptItem Ref Scope ToolCall ToolSchema Turn"
    ),
    "memstory.language.stories": "InvalidStory load_stories parse_stories",
    "memstory.language.story": "Story",
    "memstory.playing": "play",
    "memstory.results.outcomes": "CaseResult",
    "memstory.running.runner": "RunOptions",
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'memstory' has no attribute '{name}'; its names are {', '.join(__all__)}")
