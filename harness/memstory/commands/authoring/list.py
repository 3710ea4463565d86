"""`memstory list`: the stories that are there with what they need of a target, or the targets with what they can."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill, shorten
from typing import Final, NoReturn

from memstory.bundled import bundled_stories
from memstory.commands.command import FINDINGS, OK, Command, add_json, add_story_paths
from memstory.commands.output import WIDE, say_aside, say_listing, screen_width, table
from memstory.commands.story_files import story_files
from memstory.commands.story_loading import load
from memstory.commands.target_list import list_targets
from memstory.contract.errors import SetupError
from memstory.contract.texts import did_you_mean
from memstory.data_sets import SETS, set_story
from memstory.language.registry import unknown_name_message
from memstory.language.story import Story
from memstory.results.runs import quantity

_TARGETS: Final = "targets"

_SLUG, _TITLE, _LEAST_TITLE = 24, 40, 20
_GAPS: Final = 4
_HEADER: Final = 2
"""Characters that a table adds to a header."""


def _options(parser: argparse.ArgumentParser) -> None:
    add_story_paths(parser)
    parser.add_argument("--all", action="store_true", help="each of the bundled stories, not only their files")
    parser.add_argument("--tag", action="append", default=[], help="only stories with this tag; can be repeated")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.paths == [_TARGETS] and not Path(_TARGETS).exists():
        list_targets(as_json=chosen.json)
        return OK
    if len(chosen.paths) == 1 and not Path(chosen.paths[0]).exists() and did_you_mean(chosen.paths[0], [_TARGETS]):
        raise SetupError(f"no file or folder {chosen.paths[0]}.{did_you_mean(chosen.paths[0], [_TARGETS])}")
    loaded = load(story_files(chosen.paths, bundled=chosen.bundled))
    stories = [story for story in loaded.stories if set(chosen.tag) <= set(story.tags)]
    if chosen.tag and not stories and not loaded.invalid:
        _refuse_tags(chosen.tag, {tag for story in loaded.stories for tag in story.tags})
    by_file = chosen.bundled and not (chosen.paths or chosen.tag or chosen.all)
    names = ", ".join(name for name in SETS if set_story(name))
    sets = f"By name, such as 'memstory run locomo': {names}; 'memstory data list' says what they are."
    say_listing(
        [_as_json(story) for story in stories],
        *(_files(stories, loaded.files) if by_file else _table(stories, screen_width())),
        "" if chosen.paths else fill(sets, screen_width()),
        as_json=chosen.json,
    )
    for error in loaded.errors:
        say_aside(str(error))
    return FINDINGS if loaded.invalid else OK


def _refuse_tags(tags: Sequence[str], known: Collection[str]) -> NoReturn:
    for tag in tags:
        if tag not in known:
            raise SetupError(f"{unknown_name_message(tag, 'tag', known)} No story here has it.")
    raise SetupError(f"no story here has all of the tags {', '.join(tags)}")


def _files(stories: Sequence[Story], files: Mapping[str, Path]) -> Iterator[str]:
    """Yield a table with a line for each file of bundled stories, and what follows it."""
    ids: dict[str, set[str]] = defaultdict(set)
    for story in stories:
        ids[story.mark.file].add(story.id)
    root = bundled_stories().resolve()
    rows = [[files[file].resolve().relative_to(root).as_posix(), str(len(ids[file])), file] for file in ids]
    free = screen_width() - max((len(name) for name, _, _ in rows), default=0) - len("stories") - _GAPS - _HEADER
    shown = [[name, count, shorten(_subject(files[file]), max(_LEAST_TITLE, free), placeholder="…")]
             for name, count, file in rows]  # fmt: skip
    yield table(["file", "stories", "about"], shown, [None, None, None])
    yield f"{quantity(sum(map(len, ids.values())), 'story')} in {len(ids)} files"
    yield "'memstory list --bundled FOLDER', or a file, lists its stories, --all all of them."


def _subject(file: Path) -> str:
    """Return the first sentence of the comment at the head of a file, without its full stop."""
    lines = file.read_text("utf-8").splitlines()
    comment = [line.lstrip("# ") for line in lines[: next((n for n, line in enumerate(lines) if line[:1] != "#"), 0)]]
    text = " ".join(line for line in comment if not line.startswith("yaml-language-server"))
    return re.split(r"(?<=[.?]) ", text)[0].rstrip(".")


def _table(stories: Sequence[Story], width: int) -> Iterator[str]:
    """Yield a table with a line for each story, in fewer columns on a narrow screen, and how many there are."""
    names = [
        [f"{story.id}[{story.row}]" if story.row else story.id, story.slug or "", story.title] for story in stories
    ]
    count = quantity(len({story.id for story in stories}), "story")
    if width < WIDE:
        longest = max((len(name[0]) for name in names), default=0)
        title = max(_LEAST_TITLE, width - longest - _SLUG - _GAPS)
        yield table(["story", "slug", "title"], names, [None, _SLUG, title])
        yield f"{count}; tags, needs and places: a wider terminal, or --json"
    else:
        rest = [
            [" ".join(story.tags), " ".join(sorted(story.needs)), f"{story.mark.file}:{story.mark.line}"]
            for story in stories
        ]
        rows = [[*name, *more] for name, more in zip(names, rest, strict=True)]
        yield table(["story", "slug", "title", "tags", "needs", "where"], rows, [None, None, _TITLE, 16, 32, None])
        yield count


def _as_json(story: Story) -> dict[str, object]:
    return {
        "id": story.id,
        "row": story.row,
        "slug": story.slug,
        "title": story.title,
        "tags": list(story.tags),
        "covers": list(story.covers),
        "targets": list(story.targets),
        "needs": sorted(story.needs),
        "file": story.mark.file,
        "line": story.mark.line,
    }


COMMAND = Command(
    about=(
        "List stories: id, slug, title, tags, what they need from a target, and their file. Each row of "
        "'parametrize' is a separate story. Documents that cannot be read are reported on "
        "stderr. 'memstory list targets' lists "
        "the targets that can be chosen, including those of memstory.toml in this folder."
    ),
    examples="""
examples:
  memstory list                              every story below this folder
  memstory list --bundled                    a line for each file of the bundled stories
  memstory list --bundled generic            the stories of one folder
  memstory list --bundled --tag topics       those of the bundled ones that have a tag
  memstory list targets                      what --target can name here, and what each can do
  memstory list --json | jq -r '.[].id'      for programs
""",
    exit_codes=("exit codes: 0 fine, 1 some document could not be read, 2 there is nothing to list"),
    options=_options,
    run=_run,
)
