"""A file of stories -> items: one for a case, one failing item for a wrong document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from memstory.bundled import shown_path
from memstory.case import cases_of
from memstory.contract.errors import SetupError, StoryError
from memstory.controls import CONTROLS
from memstory.language.stories import InvalidStory, load_stories
from memstory.language.story import Story
from memstory.pytest_plugin.failure_text import printable
from memstory.pytest_plugin.items import InvalidItem, StoryItem, story_function
from memstory.pytest_plugin.options import NO_TARGET, NOT_RUN, is_worker
from memstory.pytest_plugin.session import SessionState, state_of
from memstory.pytest_plugin.targets import offers
from memstory.results.runs import quantity
from memstory.targets.discovery import check_names


class StoryFile(pytest.File):
    """One file with any number of stories."""

    def collect(self) -> Iterable[pytest.Item]:
        self.add_marker(pytest.mark.story)
        if NO_TARGET in self.config.stash:
            return
        state = state_of(self.config)
        try:
            names = list(state.worker.targets)
        except SetupError as error:
            self._end_without_target(str(error))
            return
        try:
            stories = load_stories(self.path, self._display(), CONTROLS)
        except (SetupError, StoryError) as error:
            raise self.CollectError(str(error)) from error
        for story in stories:
            if isinstance(story, InvalidStory):
                yield self._invalid(story)
            elif (first := state.first_places.setdefault(story.id, story.mark)) != story.mark:
                message = (
                    f"duplicate story id '{story.id}'; it was first used at {first}. Ids name results: choose another"
                )
                yield self._invalid(
                    InvalidStory(id=story.id, mark=story.mark, errors=(StoryError(message, story.mark),))
                )
            else:
                yield from self._items(story, names, state)

    def _end_without_target(self, why: str) -> None:
        """Let the session end with this error, or a worker of xdist with the same for its first file of stories."""
        said = self.config.stash[NO_TARGET] = f"{self._display()}: {why}"
        if is_worker(self.config):
            raise self.CollectError(said)

    def _items(self, story: Story, targets: Sequence[str], state: SessionState) -> Iterator[StoryItem]:
        cases = list(cases_of([story], targets))
        if story.targets and not cases:
            self._note(self._only_for(story), story)
        for case in cases:
            item = StoryItem.from_parent(self, name=case.id, callobj=story_function)
            item.prepare(case, state)
            _mark(item, story.tags)
            yield item

    def _note(self, why: str, story: Story | InvalidStory) -> None:
        """Keep why a story has no case that could say so."""
        self.config.stash.setdefault(NOT_RUN, {}).setdefault(why, []).append(f"{story.mark}: '{story.id}'")

    def _only_for(self, story: Story) -> str:
        said = f"not run, only for {', '.join(story.targets)}"
        try:
            check_names(story.targets, offers(self.config))
        except SetupError as error:
            said += f"; {error}"
        return said

    def _invalid(self, story: InvalidStory) -> InvalidItem:
        item = InvalidItem.from_parent(self, name=story.id, callobj=story_function)
        item.prepare(story, state_of(self.config))
        if self.config.option.collectonly:
            # It has no target or marker to be seen, and nothing will run that says why.
            more = f" (and {quantity(len(story.errors) - 1, 'more error')})" if len(story.errors) > 1 else ""
            self._note(f"invalid, {printable(str(story.errors[0]))}{more}", story)
        return item

    def _display(self) -> str:
        return shown_path(self.path, self.config.rootpath)


def _mark(item: pytest.Item, tags: Sequence[str]) -> None:
    """Make markers of the tags; each is registered first, so that --strict-markers accepts it."""
    registered = item.config.stash.setdefault(_TAGS, {"story"})
    for tag in tags:
        if tag not in registered:
            item.config.addinivalue_line("markers", f"{tag}: stories tagged '{tag}'")
            registered.add(tag)
        item.add_marker(getattr(pytest.mark, tag))


_TAGS: pytest.StashKey[set[str]] = pytest.StashKey()
