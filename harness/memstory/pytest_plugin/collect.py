"""A file of stories -> items: one for a case, one failing item for a wrong document."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import compress, count

import pytest

from memstory.bundled import shown_path
from memstory.case import case_id, cases_of, is_for
from memstory.contract.errors import SetupError, StoryError
from memstory.controls import CONTROLS
from memstory.language.stories import InvalidStory, StoryTable, read_story_file, second_use
from memstory.language.story import Story
from memstory.pytest_plugin.items import InvalidItem, StoryItem, story_function
from memstory.pytest_plugin.options import NO_TARGET, NOT_RUN, is_worker
from memstory.pytest_plugin.selection import Selection
from memstory.pytest_plugin.session import SessionState, state_of
from memstory.pytest_plugin.shards import Deal
from memstory.pytest_plugin.targets import offers
from memstory.reporting.document import visible
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
            yield from self._read(names, state)
        except (SetupError, StoryError) as error:
            raise self.CollectError(str(error)) from error

    def _read(self, names: Sequence[str], state: SessionState) -> Iterator[StoryItem | InvalidItem]:
        anywhere = self.config.getoption("memstory_any_path")
        for found in read_story_file(self.path, self._display(), CONTROLS, anywhere=anywhere):
            if isinstance(found, InvalidStory):
                yield self._invalid(found)
            elif error := second_use(found, state.first_places):
                yield self._invalid(InvalidStory(id=found.id, mark=found.mark, errors=(error,)))
            elif isinstance(found, StoryTable):
                yield from self._table(found, names, state)
            else:
                yield from self._items(found, names, state)

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

    def _table(self, table: StoryTable, names: Sequence[str], state: SessionState) -> Iterator[StoryItem | InvalidItem]:
        """Yield the cases of a story whose rows are in a file, for a shard only its own."""
        targets = [name for name in names if is_for(table.first, name)]
        if table.is_uniform and not targets:
            self._note(self._only_for(table.first), table.first)
        elif state.deal is not None and table.is_uniform and not _names_cases(self.config):
            yield from self._own_cases(table, targets, state, state.deal)
        else:
            for _, story in table.stories():
                yield from self._items(story, names, state) if isinstance(story, Story) else [self._invalid(story)]

    def _own_cases(
        self, table: StoryTable, targets: Sequence[str], state: SessionState, deal: Deal
    ) -> Iterator[StoryItem | InvalidItem]:
        """Deal the cases of a table out, target by target, and make the shard's own; of the others no story is made."""
        rows = table.rows.count
        key = ("rows", *targets, _file_id(self), table.id, table.digest)
        picked: Sequence[int] = range(rows * len(targets))
        ids = _case_ids(table, targets)
        selection = Selection(self.config)
        if selection.is_any:
            (probe,) = self._items(table.first, targets[:1], state)
            picked = array("q", selection.places(probe, ids))
            key = (*key, blake2b(picked.tobytes(), digest_size=16).hexdigest())
            ids = compress(_case_ids(table, targets), map(frozenset(picked).__contains__, count()))
        if self.config.getoption("memstory_quick") and table.first.measure:
            state.left_out += len(picked)
            return
        own: dict[int, list[str]] = {}
        for place in sorted(deal.own_places_in_table(key, len(picked), ids)):
            own.setdefault(picked[place] % rows, []).append(targets[picked[place] // rows])
        for row, story in table.stories(own):
            made: list[StoryItem | InvalidItem] = []
            if isinstance(story, Story):
                made += self._items(story, own[row], state)
            elif targets[0] in own[row]:
                # It is one result, whatever the number of targets, and so in one shard.
                made += filter(selection.has, [self._invalid(story)])
            for item in made:
                item.is_dealt = True
            deal.own += len(made)
            yield from made

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
            self._note(f"invalid, {visible(str(story.errors[0]))}{more}", story)
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


def _names_cases(config: pytest.Config) -> bool:
    """Whether cases are chosen by their ids: what falls to a shard is then known when all are made."""
    options = ("deselect", "lf", "stepwise")
    return any(config.getoption(name, None) for name in options) or any("::" in word for word in config.args)


def _case_ids(table: StoryTable, targets: Sequence[str]) -> Iterator[str]:
    names = [row.name for row in table.rows.rows()]
    yield from (case_id(table.id, target, name) for target in targets for name in names)


def _file_id(file: StoryFile) -> str:
    return file.nodeid if file.path.is_relative_to(file.config.rootpath) else file.path.name
