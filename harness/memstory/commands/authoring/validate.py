"""`memstory validate`: read stories and their data as a run does, and report all errors at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memstory.commands.command import FINDINGS, OK, Command, add_json, add_story_paths
from memstory.commands.ini_setting import requirements_file
from memstory.commands.output import say, say_json, with_progress
from memstory.commands.story_files import story_files
from memstory.commands.story_loading import LoadedStories, load
from memstory.contract.errors import NotSupported, SetupError, StoryError
from memstory.datasets import load_task
from memstory.language.registry import suggestion, unknown_name_message
from memstory.language.story import CallPattern, Expectation, Matcher, Retrieval, Step, Story
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
    return any(one.field != "refusal" for one in _expectations(steps)) or any(map(_forbids, steps))


def _forbids(step: Step) -> bool:
    return bool(step.forbid) or any(map(_forbids, step.steps))


def _expectations(steps: Sequence[Step]) -> Iterator[Expectation]:
    for step in steps:
        yield from step.expect
        yield from _expectations(step.steps)


def _void_checks(stories: Sequence[Story]) -> Iterator[str]:
    """Yield a warning for each bound that always holds, once for all rows of a story."""
    every = (one for story in stories for one in (*story.expect, *_expectations(story.steps)))
    void = (bound for one in every for bound in _void_bounds(one.matchers, is_count=one.field in _COUNTS))
    for mark in dict.fromkeys(bound.mark for bound in void):
        yield f"{mark}: this check cannot fail: what it bounds is never below 0"


def _void_bounds(part: Any, *, is_count: bool) -> Iterator[Matcher]:
    """Yield the matchers within `part` by which a count, a share or a time is 0 or more."""
    match part:
        case Matcher(name="ge" | "gt", argument=int() | float()):
            if is_count and (part.argument < 0 or (part.name, part.argument) == ("ge", 0)):
                yield part
        case Matcher():
            yield from _void_bounds(
                part.argument, is_count=part.name in _COUNTS or (is_count and part.name == "fields")
            )
        case CallPattern():
            yield from _void_bounds(part.args, is_count=False)
        case Mapping():
            yield from _void_bounds([*part.values()], is_count=is_count)
        case list() | tuple():
            for one in part:
                yield from _void_bounds(one, is_count=is_count)
        case _:
            return


COMMAND = Command(
    about=(
        "Check stories as a run would read them, without running them: the YAML, the grammar, names, duplicate ids, "
        "and missing or malformed data files. All mistakes are reported at once, as file:line:column."
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
