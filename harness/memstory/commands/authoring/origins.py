"""Where the needs of a story come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from memstory.language.needs import needs
from memstory.language.story import Step, Story
from memstory.target import Capability


def reasons(story: Story) -> Mapping[Capability, Sequence[str]]:
    """Return for each capability that `story` needs the parts of the story that call for it."""
    found: dict[Capability, list[str]] = {name: [] for name in sorted(story.needs)}
    for label, step in _numbered(story.steps, ""):
        for name in needs([replace(step, steps=())]):
            found[name].append(label)
    for name, reason in _from_the_head(story):
        found[name].append(reason)
    if "scope.user" in needs(story.steps):
        found["scope.user"].append("steps of several users")
    # What neither steps nor other keys call for can only have been typed.
    return {name: because or ["requires:"] for name, because in found.items()}


def _numbered(steps: Sequence[Step], before: str) -> Iterator[tuple[str, Step]]:
    for index, step in enumerate(steps, 1):
        number = f"{before}{index}"
        yield f"step {number} ({step.op}), line {step.mark.line}", step
        yield from _numbered(step.steps, f"{number}.")


def _from_the_head(story: Story) -> Iterator[tuple[Capability, str]]:
    for name in story.options:
        yield f"option.{name}", "options:"
    if story.vectors:
        yield "embedder.fixed", "vectors:"
    if story.model:
        yield "llm.scripted", "model:"
    if story.retrieval:
        yield "add", "retrieval:"
        yield "search", "retrieval:"
