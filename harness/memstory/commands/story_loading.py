"""Many story files -> stories: what every run does first, over all files at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memstory.commands.output import with_progress
from memstory.commands.story_files import FoundFile
from memstory.contract.errors import Mark, StoryError
from memstory.controls import CONTROLS
from memstory.language.stories import InvalidStory, load_stories, second_use
from memstory.language.story import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedStories:
    """The stories of several files in order, the documents that are none, and each file by its name in messages."""

    stories: Sequence[Story]
    invalid: Sequence[InvalidStory]
    files: Mapping[str, Path]

    @property
    def errors(self) -> Sequence[StoryError]:
        """Everything that is wrong, in order."""
        return [error for story in self.invalid for error in story.errors]


def load(files: Sequence[FoundFile]) -> LoadedStories:
    """Return what the files hold; a story whose id another file has used is invalid."""
    first_places: dict[str, Mark] = {}
    stories: list[Story] = []
    invalid: list[InvalidStory] = []
    for file in with_progress(files, "file"):
        for story in load_stories(file.path, file.display, CONTROLS):
            if isinstance(story, InvalidStory):
                invalid.append(story)
            elif error := second_use(story, first_places):
                invalid.append(InvalidStory(id=story.id, mark=story.mark, errors=(error,)))
            else:
                stories.append(story)
    return LoadedStories(stories=stories, invalid=invalid, files={file.display: file.path for file in files})
