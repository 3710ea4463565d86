"""`memstory list`: the stories that are there with what they need of a target, or the targets with what they can."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from memstory.commands.command import FINDINGS, OK, Command, add_json, add_story_paths
from memstory.commands.known_targets import list_targets
from memstory.commands.loaded import load
from memstory.commands.output import counted, say, say_json, table
from memstory.commands.story_files import story_files
from memstory.language.story import Story

_TARGETS: Final = "targets"


def _options(parser: argparse.ArgumentParser) -> None:
    add_story_paths(parser)
    parser.add_argument("--tag", action="append", default=[], help="only stories with this tag; may be repeated")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.paths == [_TARGETS] and not Path(_TARGETS).exists():
        list_targets(as_json=chosen.json)
        return OK
    loaded = load(story_files(chosen.paths, bundled=chosen.bundled))
    stories = [story for story in loaded.stories if set(chosen.tag) <= set(story.tags)]
    if chosen.json:
        say_json([_as_json(story) for story in stories])
    else:
        rows = [
            [_name(story), story.title, " ".join(story.tags), " ".join(sorted(story.needs)), _where(story)]
            for story in stories
        ]
        say(table(["story", "title", "tags", "needs", "where"], rows, [None, 40, 16, 32, None]))
        say(f"\n{counted(len({story.id for story in stories}), 'story')}")
    for error in loaded.errors:
        sys.stderr.write(f"{error}\n")
    return FINDINGS if loaded.invalid else OK


def _name(story: Story) -> str:
    return f"{story.id}[{story.row}]" if story.row else story.id


def _where(story: Story) -> str:
    return f"{story.mark.file}:{story.mark.line}"


def _as_json(story: Story) -> dict[str, object]:
    return {
        "id": story.id,
        "row": story.row,
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
        "List stories: id, title, tags, what they need of a target, and where they are written. A row of "
        "'parametrize' is a separate story. What cannot be read is reported on stderr. 'memstory list targets' lists "
        "the "
        "targets that can be chosen instead, those of memstory.toml in this folder among them."
    ),
    examples="""
examples:
  memstory list                              every story below this folder
  memstory list --bundled --tag topics       those of the bundled ones that have a tag
  memstory list targets                      what --target can name here, and what each can do
  memstory list --json | jq -r '.[].id'      for programs
""",
    exit_codes=("exit codes: 0 fine, 1 some document could not be read, 2 there is nothing to list"),
    options=_options,
    run=_run,
)
