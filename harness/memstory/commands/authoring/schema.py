"""`memstory schema`: the grammar of stories, for editors."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from memstory.commands.command import OK, Command
from memstory.contract.errors import SetupError
from memstory.language.grammar import schema_text

SCHEMA_NAME = "story.schema.json"
MODE_LINE = f"# yaml-language-server: $schema={SCHEMA_NAME}"
"""The first line by which editors find the schema beside a story."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it there instead of printing it")


def _run(chosen: argparse.Namespace) -> int:
    text = schema_text()
    if chosen.output is None:
        sys.stdout.write(text)
        return OK
    if chosen.output.exists() and not _is_story_schema(chosen.output):
        raise SetupError(f"{chosen.output} exists already and is not a schema of stories: choose another --output")
    chosen.output.write_text(text, "utf-8")
    sys.stdout.write(
        f"wrote {chosen.output}\n"
        "An editor that speaks YAML checks and completes a story by it, if the story begins with this line:\n"
        f"  {MODE_LINE.replace(SCHEMA_NAME, chosen.output.name)}\n"
    )
    return OK


def _is_story_schema(path: Path) -> bool:
    try:
        tree = json.loads(path.read_text("utf-8"))
    except ValueError:
        return False
    return isinstance(tree, dict) and tree.get("$id") == "urn:memstory:story"


COMMAND = Command(
    about=(
        "Write the JSON Schema of stories. 'memstory validate' and every run use this grammar. An editor with a "
        "YAML language server can use it too, to complete words and mark mistakes."
    ),
    examples=f"""
examples:
  memstory schema --output {SCHEMA_NAME}     for the stories of this folder
  memstory schema | jq '."$defs".step.properties | keys'
""",
    exit_codes=("exit codes: 0 fine, 2 the file could not be written"),
    options=_options,
    run=_run,
)
