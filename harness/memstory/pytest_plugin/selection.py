"""Which stories this run is to do, by `--quick` and `--shard 2/5`, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from statistics import median
from typing import Any, Final, cast

import pytest

from memstory.commands.results.results_files import results_at
from memstory.contract.codec import decode, encode
from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.pytest_plugin.items import InvalidItem, StoryItem
from memstory.pytest_plugin.options import TIMES, is_worker
from memstory.pytest_plugin.session import begin, state_of
from memstory.pytest_plugin.shards import CaseTimes, Deal
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Part, quantity

_SHARD: Final = "memstory_shard"
_LEFT_OUT: Final = "memstory_left_out"
"""Under which a worker of xdist tells its part of the run, and how many cases --quick has left out."""


class Selection:
    """What `-k` and `-m` select, asked of a case before it is an item: a shard of a million rows makes its own alone.

    It asks pytest's own matchers, and pytest looks at the items that are made once more itself.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Read them. One that is wrong selects all here, and ends the session where pytest reads it."""
        # pytest has no public word for what they mean to it; its own plugin for them is asked, so that both are one.
        self._own = cast("Any", config.pluginmanager.get_plugin("mark"))
        keywords, marks = config.getoption("keyword").lstrip(), config.getoption("markexpr")
        try:
            self._keywords = self._own.Expression.compile(keywords) if keywords else None
            self._marks = self._own.Expression.compile(marks) if marks else None
        except SyntaxError:
            self._keywords = self._marks = None

    @property
    def is_any(self) -> bool:
        """Whether anything is to be selected by them."""
        return self._keywords is not None or self._marks is not None

    def has(self, item: pytest.Item) -> bool:
        """Whether they leave an item in."""
        return self._has_marks(item) and self._has_keywords(item)

    def places(self, item: pytest.Item, names: Iterable[str]) -> Iterator[int]:
        """Yield the places of those names under which `item` would be left in."""
        if self._has_marks(item):
            for place, item.name in enumerate(names):
                if self._has_keywords(item):
                    yield place

    def _has_keywords(self, item: pytest.Item) -> bool:
        return self._keywords is None or bool(self._keywords.evaluate(self._own.KeywordMatcher.from_item(item)))

    def _has_marks(self, item: pytest.Item) -> bool:
        matcher = self._own.MarkMatcher.from_markers
        return self._marks is None or bool(self._marks.evaluate(matcher(item.iter_markers())))


def select_stories(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what this run is to do among `items`, those last that measure: verdicts come first."""
    if config.getoption("memstory_quick"):
        left_out = [item for item in items if isinstance(item, StoryItem) and item.case.story.measure]
        _deselect(config, items, left_out)
        state_of(config).left_out += len(left_out)
        if is_worker(config):
            config.workeroutput[_LEFT_OUT] = state_of(config).left_out  # type: ignore[attr-defined]  # of xdist
    items.sort(key=_lateness)
    if (deal := state_of(config).deal) is not None:
        deselect_others(config, items, deal)


def _lateness(item: pytest.Item) -> tuple[bool, bool]:
    """Return a key by which measurements come last, and large corpora behind small stories."""
    story = item.case.story if isinstance(item, StoryItem) else None
    return (story.measure, story.retrieval is not None) if story else (False, False)


def _deselect(config: pytest.Config, items: list[pytest.Item], unwanted: Sequence[pytest.Item]) -> None:
    gone = set(unwanted)
    items[:] = [item for item in items if item not in gone]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)


def read_times(config: pytest.Config) -> None:
    """Read what `--shard-by` names; pytest.UsageError where it is no run, or nothing is to be shared out."""
    typed: str = config.getoption("memstory_shard_by")
    if config.getoption("memstory_shard") is None:
        raise pytest.UsageError(
            f"--shard-by {typed} says how --shard shares cases out: add --shard 2/5, or leave it out"
        )
    try:
        times = times_of(typed, results_at(config.invocation_params.dir / typed))
    except SetupError as error:
        raise pytest.UsageError(f"--shard-by: {error}") from error
    if not times.seconds:
        raise pytest.UsageError(f"--shard-by: no case of {typed} ran, so that it has no times: name a run that did")
    config.stash[TIMES] = times


def times_of(name: str, cases: Iterable[CaseResult]) -> CaseTimes:
    """Return how long the cases of a run took that ran at all; nothing else of them is kept."""
    seconds, digest = dict[str, float](), blake2b(digest_size=16)
    for case in cases:
        if case.trials:
            seconds[case.id] = case.seconds
            digest.update(f"{case.id} {case.seconds!r}\n".encode("utf-8", "backslashreplace"))
    usual = median(seconds.values()) if seconds else 0.0
    return CaseTimes(name=name, seconds=seconds, usual=usual, digest=digest.hexdigest())


def deselect_others(config: pytest.Config, items: list[pytest.Item], deal: Deal) -> None:
    """Leave the shard's own stories among `items`; tests that are not stories stay, in every shard."""
    stories = [item for item in items if isinstance(item, (StoryItem, InvalidItem))]
    ours = [item for item in stories if not item.is_dealt]
    if missing := deal.own - (len(stories) - len(ours)):
        raise pytest.UsageError(
            f"--shard: a plugin or a conftest deselected {quantity(missing, 'case')} whose rows are in a file and were"
            " shared out before. Select by -k or -m instead; where that cannot be, --deselect=none has all cases made"
            " first, and shares out what is left"
        )
    keys = [_key(item) for item in ours]
    own = places_in(deal, keys, [item.case.id if isinstance(item, StoryItem) else item.name for item in ours])
    part = part_of(deal, keys, len(own))
    if deal.times is not None:
        state = state_of(config)
        rest = ", the others count for the median" if deal.timed < part.of else ""
        said = f"--shard-by {deal.times.name}: {deal.timed} of {quantity(part.of, 'case')} have a time there{rest}"
        state.remarks = "\n".join(filter(None, [state.remarks, said]))
    if is_worker(config):
        config.workeroutput[_SHARD] = encode(part)  # type: ignore[attr-defined]  # of xdist
    else:
        state_of(config).shard = part
    _deselect(config, items, [item for place, item in enumerate(ours) if place not in own])


def hear_worker(config: pytest.Config, output: Mapping[str, Tree]) -> None:
    """Take from a worker of xdist what only it knows, the run's shard and how many cases were left out, too."""
    state = state_of(config)
    state.hear(output)
    state.left_out = output.get(_LEFT_OUT, state.left_out)
    if _SHARD not in output:
        return
    state.shard = decode(Part, output[_SHARD])
    if not state.begun:
        # A shard may have no case at all; its report says so.
        begin(config)


def places_in(deal: Deal, keys: Sequence[tuple[str, ...]], cases: Sequence[str] = ()) -> set[int]:
    """Return the places of the shard's own cases; `cases` are their ids, by which there may be times.

    Cases are dealt out one by one in the order of their keys, so that those whose keys begin alike (of one target, say)
    are spread over all shards, and no shard has more than one case more than another.
    """
    order = sorted(range(len(keys)), key=lambda place: keys[place])
    return {order[place] for place in deal.own_places(len(keys), (cases[place] for place in order))}


def part_of(deal: Deal, keys: Sequence[tuple[str, ...]], own: int) -> Part:
    """Return what the shard has, `own` of the cases with these keys, and of all that was dealt."""
    parts: list[object] = [sorted(keys)]
    parts += [deal.tables] if deal.tables else []
    parts += [deal.times.digest] if deal.times else []
    digest = blake2b("".join(map(repr, parts)).encode(), digest_size=16).hexdigest()
    number, count = deal.shard.number, deal.shard.count
    return Part(number=number, count=count, cases=own + deal.own, of=len(keys) + deal.of, digest=digest)


def _key(item: StoryItem | InvalidItem) -> tuple[str, ...]:
    # Retrieval tasks are long: they are dealt out by themselves, target by target, as the steps are.
    if isinstance(item, InvalidItem):
        return ("invalid", "", _name(item))
    story = item.case.story
    # With its text: shards of two versions of a story are not of one run.
    return ("retrieval" if story.retrieval else "steps", item.case.target, _name(item), story.digest)


def _name(item: StoryItem | InvalidItem) -> str:
    if item.path.is_relative_to(item.config.rootpath):
        return item.nodeid
    # Machines may have memstory, and the stories that it brings, in different places.
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"
