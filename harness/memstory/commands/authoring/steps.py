"""`memstory steps`: every step with what it takes and what its result has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from memstory.commands.authoring.examples import STEPS as EXAMPLES
from memstory.commands.command import OK, USAGE, Command, add_json
from memstory.commands.output import say, say_json, table
from memstory.errors import SetupError
from memstory.language.grammar import unknown
from memstory.language.vocabulary import ANY_STEP_FIELDS, MODIFIERS, STEPS, StepWord

_ONLY_WITH = {"context_tokens": ("say", "context")}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", nargs="?", metavar="STEP", help="show one step with an example")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.step is not None and chosen.step not in STEPS:
        raise SetupError(unknown(chosen.step, "step", STEPS))
    words = {chosen.step: STEPS[chosen.step]} if chosen.step else STEPS
    if chosen.json:
        say_json([_as_json(name, word) for name, word in words.items()])
    elif chosen.step:
        say(_one(chosen.step, STEPS[chosen.step]))
    else:
        say(_all())
    return OK


def _all() -> str:
    rows = [[name, word.summary, ", ".join(word.fields)] for name, word in STEPS.items()]
    return "\n\n".join([
        table(["step", "what it does", "its result has"], rows, [None, 60, None]),
        table(["beside a step", "meaning"], [[f"{name}:", text] for name, text in MODIFIERS.items()], [None, 70]),
        table(["under expect", "meaning"], [[f"{name}:", text] for name, text in ANY_STEP_FIELDS.items()], [None, 70]),
        "'memstory steps STEP' shows an example, 'memstory matchers' what can be said of a result.",
    ])  # fmt: skip


def expectable(name: str) -> Sequence[str]:
    """Return everything that `expect:` of a step may speak of."""
    return [*STEPS[name].fields, *(field for field in ANY_STEP_FIELDS if name in _ONLY_WITH.get(field, STEPS))]


def _one(name: str, word: StepWord) -> str:
    return f"{name}: {word.summary}\nexpect: {', '.join(expectable(name))}\n\n{EXAMPLES[name].strip()}"


def _as_json(name: str, word: StepWord) -> dict[str, object]:
    return {
        "step": name,
        "summary": word.summary,
        "args": word.args,
        "expect": list(expectable(name)),
        "example": EXAMPLES[name].strip(),
    }


COMMAND = Command(
    about=("List every step: what it does, and what 'expect:' can speak of in its result."),
    examples="""
examples:
  memstory steps              all of them, with what may stand beside them
  memstory steps parallel     one with an example
  memstory steps --json
""",
    exit_codes=f"exit codes: {OK} fine, {USAGE} there is no such step",
    options=_options,
    run=_run,
)
