"""story x target -> Case: the unit that runs, is judged and is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memstory.controls import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memstory.language.story import Story


CONTROL = "control:"
EMPTY_CONTROL = f"{CONTROL}nothing"
"""The memory that remembers nothing. It gets every story, since one that it passes shows nothing about any target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One story on one target. Each row of `parametrize` is already a story, named by `story.row`."""

    story: Story
    target: str

    @property
    def id(self) -> str:
        """`S5[topics]`, or `S5[topics-row]`."""
        return case_id(self.story.id, self.target, self.story.row)


def case_id(story: str, target: str, row: str | None) -> str:
    """Return the id of a case, which is known before its story is."""
    return f"{story}[{target}-{row}]" if row else f"{story}[{target}]"


def cases_of(stories: Sequence[Story], targets: Sequence[str]) -> Iterator[Case]:
    """Yield a case for every story and every chosen target that the story does not exclude, in order."""
    for story in stories:
        for target in targets:
            if is_for(story, target):
                yield Case(story=story, target=target)


def is_for(story: Story, target: str) -> bool:
    """Whether a story runs on a target that was chosen."""
    # There are many narrow faults: each gets the stories that are written against it.
    control = target.removeprefix(CONTROL)
    if target.startswith(CONTROL) and control in FAULTS:
        return control in story.control
    return not story.targets or target == EMPTY_CONTROL or any(is_named(target, one) for one in story.targets)


def is_named(target: str, name: str) -> bool:
    """Say whether a target is the one of this name, or the same memory on another engine.

    >>> is_named("topics-chroma", "topics"), is_named("topics", "topics-chroma"), is_named("topical", "topics")
    (True, False, False)
    """
    return target == name or target.startswith(f"{name}-")
