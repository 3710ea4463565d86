"""Stories and evaluation for the memory of AI agents.

What is listed here is what other code may import, and all that is promised to stay. Each name is imported when it is
first asked for, since pytest imports this package in every project.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from memstory.clock import Clock, Stopwatch
    from memstory.conformance import TargetContract
    from memstory.errors import (
        Mark,
        MemstoryError,
        MissingValue,
        NotSupported,
        Refused,
        SetupError,
        StoryError,
        TargetError,
    )
    from memstory.language.stories import InvalidStory, load_stories, parse_stories
    from memstory.language.story import Story
    from memstory.playing import play
    from memstory.results.outcomes import CaseResult
    from memstory.running.runner import RunOptions
    from memstory.target import Target, TargetFactory
    from memstory.values import (
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

_HOMES: Final = (
    "values",
    "errors",
    "target",
    "clock",
    "language.stories",
    "results.outcomes",
    "playing",
    "conformance",
)
"""The modules that have these names, the cheapest first."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"memstory.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'memstory' has no attribute '{name}'; its names are {', '.join(__all__)}")
