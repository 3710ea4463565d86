"""`memstory validate`: read stories and their data as a run does, and report all errors at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, Final

from memstory.commands.command import FINDINGS, OK, Command, add_json, add_story_paths
from memstory.commands.ini_setting import requirements_file
from memstory.commands.output import say, say_json, with_progress
from memstory.commands.story_files import story_files
from memstory.commands.story_loading import LoadedStories, load
from memstory.contract.errors import NotSupported, SetupError, StoryError
from memstory.datasets import load_task
from memstory.language.matchers.check import Context
from memstory.language.matchers.expectable import judge
from memstory.language.registry import suggestion, unknown_name_message
from memstory.language.story import CallPattern, Matcher, Retrieval, Step, Story
from memstory.language.story_paths import Bounds
from memstory.results.runs import quantity
from memstory.targets.discovery import check_names

_COUNTS: Final = frozenset({"count", "length", "occurs", "latency_ms", "context_tokens", "metrics"})
"""The fields and matchers whose numbers are never below 0."""


def _options(parser: argparse.ArgumentParser) -> None:
    add_story_paths(parser)
    parser.add_argument(
        "--requirements",
        type=Path,
        metavar="FILE",
        help="a text that must contain every id that a story 'covers' (default: the ini setting memstory_requirements)",
    )
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    files = story_files(chosen.paths, bundled=chosen.bundled)
    loaded = load(files)
    errors, notes = _check_stories(loaded)
    # Bundled stories cover requirements of memstory, not of the project.
    if requirements := chosen.requirements or (None if chosen.bundled else requirements_file(Path.cwd())):
        errors = sorted([*errors, *_unknown_requirements(loaded.stories, requirements)], key=_place)
    if chosen.json:
        say_json(_as_json(loaded, errors, notes))
        return FINDINGS if errors else OK
    for line in (*map(str, errors), *(f"{note} (a warning, no error)" for note in notes)):
        say(line)
    count, among = quantity(len({story.id for story in loaded.stories}), "story"), quantity(len(files), "file")
    fine = f"no error, {quantity(len(notes), 'warning')}" if notes else "nothing is wrong"
    say(f"{quantity(len(errors), 'error')} in {among}; {count} could be read" if errors else
        f"{count} in {among}: {fine}")  # fmt: skip
    return FINDINGS if errors else OK


def _as_json(loaded: LoadedStories, errors: Sequence[StoryError], notes: Sequence[str]) -> dict[str, object]:
    return {
        "files": len(loaded.files),
        "stories": len({story.id for story in loaded.stories}),
        "errors": [
            {"where": str(error.mark) if error.mark else None, "message": error.message}
            for error in errors
        ],
        "notes": list(notes),
    }  # fmt: skip


def _check_stories(loaded: LoadedStories) -> tuple[Sequence[StoryError], Sequence[str]]:
    """Return all errors, those of data files too, and warnings."""
    errors = list(loaded.errors)
    notes = [
        *_unknown_targets(loaded.stories),
        *_empty_stories(loaded.stories),
        *_void_checks(loaded.stories),
        *_vain_checks(loaded.stories),
        *_idle_stories(loaded.stories),
        *_unknown_preconditions(loaded.stories),
    ]
    errors += [error for story in loaded.stories for error in _options_outside(story, loaded)]
    read: set[tuple[object, ...]] = set()
    for story in with_progress([story for story in loaded.stories if story.retrieval], "set of data"):
        task, base = story.retrieval, loaded.files[story.mark.file].parent
        if task is None or (what := _identity(task, base)) in read:
            continue
        read.add(what)
        try:
            notes += _unusable(task, load_task(task, base).unusable)
        except StoryError as error:
            # Each line that is wrong counts.
            errors += [StoryError(line, error.mark) for line in error.message.split("\n")]
        except (NotSupported, SetupError) as error:
            notes.append(f"{task.mark}: {error}")
    return sorted(errors, key=_place), notes


def _unknown_requirements(stories: Sequence[Story], requirements: Path) -> Iterator[StoryError]:
    """Yield an error for each id under `covers` that the file does not have, once for all rows of a story."""
    try:
        known = set(re.findall(r"[\w.-]*\w", requirements.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise SetupError(f"the requirements in {requirements} cannot be read: {error}") from error
    for mark, name in dict.fromkeys((story.mark, name) for story in stories for name in story.covers):
        if name not in known:
            yield StoryError(f"'covers' names '{name}', which {requirements} does not.{suggestion(name, known)}", mark)


def _options_outside(story: Story, loaded: LoadedStories) -> Iterator[StoryError]:
    folder = loaded.files[story.mark.file].parent
    try:
        Bounds(base=folder, workspace=folder).check("options", story.options, story.mark)
    except StoryError as error:
        yield error


def _unusable(task: Retrieval, labels: Sequence[str]) -> Iterator[str]:
    # Data sets of others have such, and reports say so; in one's own files they are typos.
    if labels and task.corpus:
        yield f"{task.mark}: {quantity(len(labels), 'gold label')} cannot be used, and no score counts it: {labels[0]}"


def _identity(task: Retrieval, base: Path) -> tuple[object, ...]:
    return (base, task.corpus, task.queries, task.dataset, task.path, task.preloaded)


def _place(error: StoryError) -> tuple[str, int, int]:
    return (error.mark.file, error.mark.line, error.mark.column) if error.mark else ("", 0, 0)


def _unknown_targets(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each target that is not installed: its stories would never run, and nothing would say so."""
    seen: set[str] = set()
    for story in stories:
        for name in set(story.targets) - seen:
            seen.add(name)
            try:
                check_names([name])
            except SetupError as error:
                yield f"{story.mark}: under 'targets': {error}"


def _unknown_preconditions(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each `precondition:` that no story here or bundled has as its id."""
    named = {story.mark: story.precondition for story in stories if story.precondition}
    known = {story.id for story in stories}
    if set(named.values()) - known:
        known |= {story.id for story in load(story_files(["."], bundled=True)).stories}
    for mark, name in named.items():
        if name not in known:
            yield f"{mark}: under 'precondition': {unknown_name_message(name, 'story', known)}"


def _empty_stories(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each story that expects nothing and does not measure: any memory passes it."""
    silent = (story.mark for story in stories if not (story.measure or story.expect or _expects(story.steps)))
    for mark in dict.fromkeys(silent):
        yield f"{mark}: the story expects nothing, so every memory passes it; write an 'expect'"


def _expects(steps: Sequence[Step]) -> bool:
    wanted = (one for step in _all_steps(steps) for one in step.expect)
    return any(one.field != "refusal" for one in wanted) or any(map(_forbids, steps))


def _forbids(step: Step) -> bool:
    return bool(step.forbid) or any(map(_forbids, step.steps))


def _idle_stories(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each story that only expects not to find: a memory that keeps nothing passes it."""
    idle = (story.mark for story in stories if _is_met_by_nothing(story))
    for mark in dict.fromkeys(idle):
        yield (
            f"{mark}: a memory that keeps nothing passes this story, which only expects not to find; expect first that "
            "something is found, such as hits: {count: {ge: 1}}, or write control: {nothing: pass, because: …}"
        )


def _is_met_by_nothing(story: Story) -> bool:
    """Whether all that a story expects are hits, and no hits meet it."""
    steps = list(_all_steps(story.steps))
    names = Context(names={name: name for step in steps for name in step.save})
    wanted = [one for step in steps for one in step.expect if one.field != "refusal"]
    is_meant = story.measure or story.control.get("nothing") == "passed" or any(map(_forbids, steps))
    return (
        bool(wanted)
        and not (is_meant or story.expect)
        and all(
            one.field == "hits" and all(judge("hits", [], part, names).holds for part in one.matchers) for one in wanted
        )
    )


def _all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _all_steps(step.steps)


def _void_checks(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each bound that always holds, once for all rows of a story."""
    void = (bound.mark for group, least, _ in _all_groups(stories) for bound in group if _is_void(bound, least))
    for mark in dict.fromkeys(void):
        yield f"{mark}: this check cannot fail: what it bounds is never below 0"


def _is_void(bound: Matcher, least: float) -> bool:
    number = _number(bound)
    return bound.name in ("ge", "gt") and (number < least or (bound.name == "ge" and number == least))


def _vain_checks(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each group of bounds that no number meets, once for all rows of a story."""
    vain = (group[0].mark for group, least, most in _all_groups(stories) if _is_vain(group, least, most))
    for mark in dict.fromkeys(vain):
        yield f"{mark}: this check can never hold: no number is within these bounds"


def _is_vain(group: Sequence[Matcher], least: float, most: float) -> bool:
    lower = [number for one in group if one.name in ("ge", "gt", "equals") and not isnan(number := _number(one))]
    upper = [number for one in group if one.name in ("le", "lt", "equals") and not isnan(number := _number(one))]
    least, most = max([*lower, least]), min([*upper, most])
    excluded = [_number(one) for one in group if one.name in ("gt", "lt")]
    return bool(lower or upper) and (least > most or (least == most and least in excluded))


def _number(bound: Matcher) -> float:
    """Return the number of a bound, NaN for one that has none."""
    is_number = isinstance(bound.argument, int | float) and not isinstance(bound.argument, bool)
    return float(bound.argument) if is_number else nan


def _all_groups(stories: Sequence[Story]) -> Iterator[tuple[Sequence[Matcher], float, float]]:
    """Yield each group of matchers that must all hold, and the least and the most that what they bound can be."""
    for story in stories:
        for one in story.expect:
            yield from _groups(one.matchers, _least(one.field))
        for step in _all_steps(story.steps):
            limit = step.args.get("top_k", step.args.get("limit"))
            for one in step.expect:
                is_empty = any(part.name == "empty" and part.argument for part in one.matchers)
                most = 0 if is_empty else limit
                yield from _groups(one.matchers, _least(one.field), inf if most is None else most)


def _groups(part: Any, least: float = -inf, most: float = inf) -> Iterator[tuple[Sequence[Matcher], float, float]]:
    match part:
        case Matcher():
            inner = least if part.name == "fields" else _least(part.name)
            yield from _groups(part.argument, inner, most if part.name == "count" else inf)
        case CallPattern():
            yield from _groups(part.args)
        case Mapping():
            yield from _groups([*part.values()], least, most)
        case list() | tuple():
            yield [one for one in part if isinstance(one, Matcher)], least, most
            for one in part:
                yield from _groups(one, least, most)
        case _:
            return


def _least(name: str) -> float:
    return 0 if name in _COUNTS else -inf


COMMAND = Command(
    about=(
        "Check stories as a run would read them, without running them: the YAML, the grammar, names, duplicate ids, "
        "and missing or malformed data files. All mistakes are reported at once, as file:line:column. Warnings tell of "
        "what cannot fail or can never hold, and of stories that a memory that keeps nothing passes."
    ),
    examples="""
examples:
  memstory validate                        every story below this folder
  memstory validate mine.story.yaml        one file
  memstory validate --bundled              the stories that come with memstory
  memstory validate --requirements spec.md with every id under 'covers' looked up in spec.md
  memstory validate --json | jq .errors    for programs
""",
    exit_codes=("exit codes: 0 nothing is wrong, 1 something is, 2 there is nothing to check"),
    options=_options,
    run=_run,
)
