"""`memstory steps`: every step with what it takes and what its result has."""

from __future__ import annotations

import argparse

from memstory.commands.command import OK, USAGE, Command, add_json
from memstory.commands.output import say, say_json, table
from memstory.contract.errors import SetupError
from memstory.language.matchers import EXPECTABLE
from memstory.language.registry import unknown
from memstory.language.words import WORDS, Word
from memstory.language.words.step_parsing import MODIFIERS


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", nargs="?", metavar="STEP", help="show one step with an example")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.step is not None and chosen.step not in WORDS:
        raise SetupError(unknown(chosen.step, "step", WORDS))
    words = [WORDS[chosen.step]] if chosen.step else list(WORDS.values())
    if chosen.json:
        say_json([_as_json(word) for word in words])
    elif chosen.step:
        say(_one(WORDS[chosen.step]))
    else:
        say(_all())
    return OK


def _all() -> str:
    rows = [[word.name, word.summary, ", ".join(word.fields)] for word in WORDS.values()]
    beside = [[f"{name}:", modifier["description"]] for name, modifier in MODIFIERS.items()]
    expected = [[f"{one.name}:", one.summary] for one in EXPECTABLE.values() if one.is_everywhere or one.is_measure]
    return "\n\n".join([
        table(["step", "what it does", "its result has"], rows, [None, 60, None]),
        table(["beside a step", "meaning"], beside, [None, 70]),
        table(["under expect", "meaning"], expected, [None, 70]),
        "'memstory steps STEP' shows an example, 'memstory matchers' what a story can assert about a result.",
    ])  # fmt: skip


def _one(word: Word) -> str:
    return f"{word.name}: {word.summary}\nexpect: {', '.join(word.expectable)}\n\n{word.example.strip()}"


def _as_json(word: Word) -> dict[str, object]:
    return {
        "step": word.name,
        "summary": word.summary,
        "args": word.args,
        "expect": list(word.expectable),
        "example": word.example.strip(),
    }


COMMAND = Command(
    about=("List every step: what it does, and what 'expect:' can speak of in its result."),
    examples="""
examples:
  memstory steps              all of them, with the keys that they share
  memstory steps parallel     one with an example
  memstory steps --json
""",
    exit_codes=f"exit codes: {OK} fine, {USAGE} there is no such step",
    options=_options,
    run=_run,
)
