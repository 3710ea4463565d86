"""What a story needs from a target, derived from its steps, expectations and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.target import Capability
from memstory.language.story import Step, Story
from memstory.language.words import WORDS

LACKS: Final = " does not support "
"""What is in the reason of a case between a target's name and the capabilities that it lacks."""


def reasons(story: Story) -> Mapping[Capability, Sequence[str]]:
    """Return each capability that `story` needs with the parts of the story that call for it.

    What `story.needs` has beside them is what somebody has typed.
    """
    found: dict[Capability, list[str]] = {}
    for name, reason in (*_of_steps(story.steps), *_of_keys(story)):
        # A story for some targets speaks of the metadata that these have.
        if not (story.targets and name.startswith("add.metadata")):
            found.setdefault(name, []).append(reason)
    return {name: found.get(name, ["requires:"]) for name in sorted(found.keys() | story.needs)}


def _of_steps(steps: Sequence[Step]) -> Iterator[tuple[Capability, str]]:
    numbered = list(_numbered(steps, ""))
    for number, step in numbered:
        for name in WORDS[step.op].needed(step.args, step.expect):
            yield name, f"step {number} ({step.op}), line {step.mark.line}"
        if step.forbid:
            yield "search", f"forbid: of step {number} ({step.op}), line {step.mark.line}"
    users = {step.user for _, step in numbered if WORDS[step.op].has_user}
    if len(users) > 1 or any("${" in (user or "") for user in users):
        yield "scope.user", "steps of several users"


def _numbered(steps: Sequence[Step], before: str) -> Iterator[tuple[str, Step]]:
    for index, step in enumerate(steps, 1):
        yield f"{before}{index}", step
        yield from _numbered(step.steps, f"{before}{index}.")


def _of_keys(story: Story) -> Iterator[tuple[Capability, str]]:
    for name in story.options:
        yield f"option.{name}", "options:"
    if story.vectors:
        yield "embedder.fixed", "vectors:"
    if story.model:
        yield "llm.scripted", "model:"
    if story.retrieval:
        yield "add", "retrieval:"
        yield "search", "retrieval:"
