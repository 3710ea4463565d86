"""`memstory steps`, `matchers` and `schema`: the words of the story language, for people, programs and editors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, USAGE, Command, add_json
from memstory.commands.output import say_listing, table
from memstory.contract.errors import SetupError
from memstory.language.grammar import grammar, schema_text
from memstory.language.matchers import CALL_CHECKS, EXPECTABLE, HIT_CHECKS, HIT_FIELDS, MATCHERS, METRICS, Check
from memstory.language.registry import Registry, unknown_name_message
from memstory.language.words import WORDS, Word
from memstory.language.words.step_parsing import MODIFIERS

SCHEMA_NAME: Final = "story.schema.json"
MODE_LINE: Final = f"# yaml-language-server: $schema={SCHEMA_NAME}"
"""The first line by which editors find the schema beside a story."""


def _options_of_steps(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", nargs="?", metavar="STEP", help="show one step with an example")
    add_json(parser)


def _steps(chosen: argparse.Namespace) -> int:
    if chosen.step is not None and chosen.step not in WORDS:
        raise SetupError(unknown_name_message(chosen.step, "step", WORDS))
    words = [WORDS[chosen.step]] if chosen.step else list(WORDS.values())
    records = [
        {"step": word.name, "summary": word.summary, "forms": word.forms, "keys": word.keys,
         "expect": list(word.expectable), "example": word.example.strip()}
        for word in words
    ]  # fmt: skip
    say_listing(records, *(_one_step(words[0]) if chosen.step else _all_steps(words)), as_json=chosen.json)
    return OK


def _one_step(word: Word) -> Iterable[str]:
    forms = f"takes: {word.forms}\n" if word.forms else ""
    yield f"{word.name}: {word.summary}\n{forms}expect: {', '.join(word.expectable)}"
    yield _meanings("key", word.keys, 70)
    yield word.example.strip()


def _all_steps(words: Sequence[Word]) -> Iterable[str]:
    rows = [[word.name, word.summary, ", ".join(word.fields)] for word in words]
    yield table(["step", "what it does", "its result has"], rows, [None, 60, None])
    yield _meanings("beside a step", {f"{name}:": one["description"] for name, one in MODIFIERS.items()}, 70)
    expected = {f"{one.name}:": one.summary for one in EXPECTABLE.values() if one.is_everywhere or one.is_measure}
    yield _meanings("under expect", expected, 70)
    yield "'memstory steps STEP' shows an example, 'memstory matchers' what a story can assert about a result."


def _matchers(chosen: argparse.Namespace) -> int:
    checks = {"matchers": MATCHERS, "hits": HIT_CHECKS, "tool_calls": CALL_CHECKS}
    metrics = {name: one.summary for name, one in METRICS.items()}
    records = {
        key: [{"name": one.name, "meaning": one.summary, "example": one.example} for one in registry.values()]
        for key, registry in checks.items()
    }
    uncut = " and ".join(one.name for one in METRICS.values() if not one.is_cut)
    say_listing(
        {**records, "hit_fields": list(HIT_FIELDS), "metrics": metrics},
        "A plain value means 'equals'. Several matchers in one mapping must all hold.",
        _checks("matcher", MATCHERS),
        _checks("hits:", HIT_CHECKS),
        f"A hit is a saved name, or a mapping of matchers on {', '.join(HIT_FIELDS)}.",
        _checks("tool_calls:", CALL_CHECKS),
        _meanings("metrics:", metrics, 75),
        f"All but {uncut} are cut at k: {{metrics: {{recall@5: {{ge: 0.9}}}}}}.",
        as_json=chosen.json,
    )
    return OK


def _checks(header: str, checks: Registry[Check]) -> str:
    rows = [[one.name, one.summary, one.example] for one in checks.values()]
    return table([header, "holds if", "example"], rows, [None, 60, None])


def _meanings(header: str, meanings: Mapping[str, str], width: int) -> str:
    return table([header, "meaning"], [*map(list, meanings.items())], [None, width])


def _options_of_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it there instead of printing it")


def _schema(chosen: argparse.Namespace) -> int:
    text = schema_text()
    if chosen.output is None:
        sys.stdout.write(text)
        return OK
    if (chosen.output.is_file() or chosen.output.is_dir()) and not _is_story_schema(chosen.output):
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
    return isinstance(tree, dict) and tree.get("$id") == grammar()["$id"]


COMMANDS: Final[Mapping[str, Command]] = {
    "steps": Command(
        about="List every step: what it does, and what 'expect:' can speak of in its result.",
        examples="""
examples:
  memstory steps              all of them, with the keys that they share
  memstory steps parallel     one with an example
  memstory steps --json
""",
        exit_codes=f"exit codes: {OK} fine, {USAGE} there is no such step",
        options=_options_of_steps,
        run=_steps,
    ),
    "matchers": Command(
        about=(
            "List the matchers, the checks of hits and of tool calls, and the metrics of retrieval, each with an "
            "example."
        ),
        examples="""
examples:
  memstory matchers
  memstory matchers --json | jq -r '.matchers[].name'
""",
        exit_codes=f"exit codes: {OK} fine",
        options=add_json,
        run=_matchers,
    ),
    "schema": Command(
        about=(
            "Write the JSON Schema of stories. 'memstory validate' and every run use this grammar. An editor with a "
            "YAML language server can use it too, to complete words and mark mistakes."
        ),
        examples=f"""
examples:
  memstory schema --output {SCHEMA_NAME}     for the stories of this folder
  memstory schema | jq '."$defs".step.properties | keys'
""",
        exit_codes="exit codes: 0 fine, 2 the file could not be written",
        options=_options_of_schema,
        run=_schema,
    ),
}
