# noqa: INP001  (a script, no package)
"""Writes docs/reference from the code: `python docs/make_reference.py`; `--check` only says what is not current."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import memstory
from memstory.cli import COMMANDS, load_command, parser_of
from memstory.conformance import CHECKED, ELSEWHERE
from memstory.contract.errors import SetupError
from memstory.controls import FAULTS
from memstory.data_sets import SETS
from memstory.datasets.loading import BEIR, DATASETS, place_of
from memstory.language.capabilities import FEATURES, families, operations
from memstory.language.grammar import grammar, schema_text
from memstory.language.matchers import CALL_CHECKS, HIT_CHECKS, HIT_FIELDS, MATCHERS, METRICS, Check
from memstory.language.registry import Registry
from memstory.language.words import WORDS, Word
from memstory.language.words.step_parsing import MODIFIERS
from memstory.pytest_plugin.options import add_options
from memstory.reporting.document import SIGNS
from memstory.results.derived_schema import results_schema
from memstory.results.outcomes import HARMS, WORST_FIRST, Outcome
from memstory.targets.adapter import AdapterFactory
from memstory.targets.discovery import GROUP, known_names, load_targets
from memstory.targets.embedders import EmbeddingFactory
from memstory.targets.objects.names import ARGUMENTS, ENDINGS, FIELDS, GIVEN, LISTS, METHODS, PLACES
from memstory.targets.tables.reading import schema as table_schema

Schema = Mapping[str, Any]

PYTHON_HEAD = """
# Python

Everything that other code may import, as in `from memstory import Target`. All other modules are internal.
"""
NOTEBOOK = """
Without pytest, as in a notebook:

```python
from pathlib import Path

from memstory import load_stories, play
from my_memory import MyFactory

for story in load_stories(Path("coffee.story.yaml")):
    result = await play(story, MyFactory())
    print(result.outcome, result.reason)
```
"""
PYTHON: Mapping[str, tuple[str, str]] = {
    "A target": (
        "[Test your own memory](../how-to/test-your-own-memory.md) shows how to write one.",
        "Target TargetFactory TargetContract Environment Clock Stopwatch Capability",
    ),
    "What goes in and comes out": (
        "Frozen dataclasses, with keywords only. What has `=…` may be left out.",
        "Scope Item Ref Query Hit Receipt ReceiptItem ToolSchema ToolCall Turn Json",
    ),
    "Running stories": (NOTEBOOK, "play RunOptions CaseResult load_stories parse_stories Story InvalidStory"),
    "Errors": (
        "One class for each person who has to act.",
        "MemstoryError StoryError TargetError SetupError MissingValue NotSupported Refused Mark",
    ),
}
"""By section: its introduction, and its names in order."""

WITH_FIELDS = frozenset({"Environment", *PYTHON["What goes in and comes out"][1].split()} - {"Json"})
"""What an adapter reads and makes."""

ALIASES = {
    "Capability": "A word for what a target can do, such as `search` or `job.compress`: see [targets](targets.md).",
    "Json": "None, bool, int, float, str, or lists and mappings with text keys of these.",
}

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "reference"
SCHEMA = Path(__file__).parents[1] / "harness/memstory/story.schema.json"
NOTICE = "<!-- made by `python docs/make_reference.py`: change the code, not this page -->"

OUTCOMES = {
    "passed": ("PASSED", "every expectation held", "nobody"),
    "failed": (
        "FAILED",
        "an expectation did not hold, or a later step needs a value that no result had; the message says which",
        "the backend",
    ),
    "exhausted": (
        "SKIPPED",
        "the budget of the run (`--max-tokens`, `--max-cost`) was spent before it began",
        "who runs it: more budget, or fewer stories",
    ),
    "measured": (
        "MEASURED",
        "the story says `measure: true`: scores were taken and nothing was asked for; JUnit calls it skipped",
        "nobody",
    ),
    "unsupported": (
        "SKIPPED",
        "the target lacks a capability, or the machine the data; the reason is reported",
        "nobody",
    ),
    "error": (
        "ERROR",
        "the target broke instead of answering, says that it cannot do what it declares, or could not be started",
        "the adapter or the machine",
    ),
    "invalid": (
        "FAILED",
        "the story is wrong: `file:line:column`, what was found, what is allowed",
        "the story's author",
    ),
}
"""Each outcome: what pytest shows, what it means, and who has to act."""

KEYS = ["key", "meaning"]
CHECKS = ["check", "holds if", "written"]
ABLE = ["capability", "a target that has it", "what the conformance suite shows"]

STORY = """
# A story

One YAML document, with `---` between two. It has either `steps` or a `retrieval`. What it needs of a target follows
from what it says; nobody types that by hand.
"""
MODEL = """
## A scripted model

{meaning} A call that no rule fits ends the case as `error` and prints the prompt. No language model judges anything.
"""
DURATIONS = """
A duration is a text such as `30d`, `1h 5m`, `500ms` or `1us`, or a mapping of {units}. Known data sets: {datasets}.
"""
STEPS_HEAD = """
# Steps

A step is a mapping with one operation and optional modifiers. `memstory steps` prints this list,
`memstory steps STEP` one of them.
"""
MATCHERS_HEAD = """
# Matchers

An expectation is a plain value, which means `equals`, or a mapping of matchers that must all hold. A mapping of other
keys means `fields`. `memstory matchers` prints these tables.
"""
HITS = """
## Hits

What may stand under `hits:`, where `ferry` is a saved name. A hit is a saved name, or a mapping of matchers on
{fields}. Checks combine.
"""
CALLS = """
## Tool calls

What may stand under `tool_calls:`. A call is the name of a tool, or `{name: {argument: matcher}}`. Each call is held
against the schema that the target announced, too.
"""
METRICS_HEAD = """
## Metrics

What may stand under `metrics:` of a retrieval story; `k` is a number, as in `recall@5`.
"""
OUTCOMES_HEAD = """
# Outcomes

A case is one story on one target. It ends in one of seven ways, in the report and in pytest:
"""
OUTCOMES_TAIL = """
`measured`, `unsupported`, `exhausted` and `error` count neither for nor against a target, and are always shown.

A story with `trials` runs several times, each time with its own seed, and passes if as many trials pass as `pass`
asks for; it is called flaky if any did not. A trial that broke is none that passed, and otherwise decides nothing.

A run whose stories were all unsupported counts as a failure: nothing was found out.

## Where there are several

A case, its trials and the runs of a baseline can end in several ways. The worst counts, unless enough trials pass:
{order}. Of failures the worst harm comes first: {harms}.

- **What was seen counts**, however the case went on: a leak in step 2 is a failure, with its harm, though the target
  breaks, hangs or says `NotSupported` in step 3. The reason says both.
- **Nothing is run again in silence.** What another plugin runs again, such as `--reruns` of pytest-rerunfailures, is
  one case with the trials of all runs, and ends as its worst run: `flaky: failed first, passed when run again`, with
  the first failure. For a memory that varies, say `trials` and `pass` in the story.
- **A run in which a case failed never ends with exit code 0**, also where an `xfail` mark or a patch keeps pytest
  from counting it; a line says so.
- **A warning is no outcome.** An exception in a background task that the target left behind, which asyncio would
  drop, is a warning of its case.
"""
OPTIONS_HEAD = """
# Options

These are options of pytest and of `memstory run`. Pytest's own options work as usual: `-k`, `-m`, `-x`, `--lf`, `-n 2`.
A story's tag is a marker.

`--target` is short for `--memstory-target`, and so on for each of them. If the short name is an option of your project
or of another plugin, it stays theirs, and memstory's is the long one; a line at the end of the run says so. `memstory
run` always takes the short names for memstory's.
"""
NO_TARGET = """
If neither `--target` nor `memstory_target` is given, stories run on the targets of `pyproject.toml`:

```toml
[tool.memstory]
targets = ["my_module:MyFactory"]
```

If there are none, plain `pytest` runs them on all tables of the project's `memstory.toml` and on what its `conftest.py`
offers, or else ends with an error; `memstory run` runs them on the reference memories.
"""
TARGETS_HEAD = """
# Targets

A target is a memory under test. `--target` takes a name from this table, the name of a group, a name that your own
package or `conftest.py` offers, `module:Class` of a factory, or `module:Name` of [any object](objects.md) with methods
such as `add` and `search`. [Test your own memory](../how-to/test-your-own-memory.md) shows how to write a factory.
"""
CAPABILITIES_HEAD = """
## Capabilities

What a story needs and a target can. `memstory explain STORY` compares the two. The last column says which test of
[`TargetContract`](../how-to/test-your-own-memory.md#check-the-adapter) fails where a capability is declared falsely.
"""
OBJECTS_HEAD = """
# Objects

`--target module:Name` takes a class, a function that returns an object (`def make(path) -> Memory:`) or an object, with
methods as people write them: `def` or `async def`. Names are compared without underscores and case, so that `user_id`
and `userId` are one. [Test a memory class as it is](../how-to/test-a-class.md) shows a run.
"""
OBJECTS_METHODS = """
## Methods

The first that the object has, and whose parameters are known, does the operation. {endings} may stand behind a name:
`add_memory`, `search_notes`. An object needs a method for `add` and one for `search`.
"""
OBJECTS_ARGUMENTS = """
## Arguments

What is given to a parameter, by its name. A required parameter of a method with another name takes what is still
missing, in order: the text or the query, the id, then the new text. A parameter with a default is left alone where a
story says nothing; a required one gets 10 as the number of hits and `memstory` as the session. A list is of all: where
its limit is required, or a number by default, it gets 10,000. A parameter whose annotation is a type that no text is,
such as `content: MemoryContent`, is not given one, and where `add` takes no user, no other method is given one that it
does not require.
"""
OBJECTS_RESULTS = """
## Results

- A search and a list return hits: a list, a tuple, a generator or an async generator of them, or a mapping that has
  it under {lists}. A tuple of a list and something else is the list. None is no hit.
- A hit is a text, a mapping, an object with attributes, or a tuple: `(text, score)`, `(id, text)`, `(id, text, score)`.
- `add` returns the id, or a mapping or an object with it. If it returns none, the text is looked up in the list, or
  by a search.
- `delete` returns whether there was anything; None means yes. `update` of an unknown id raises, returns False, or
  leaves nothing to get.
- A `LookupError` (such as `KeyError`), or an error whose name ends with `NotFound`, `NotFoundError` or `DoesNotExist`,
  means in `get`, `update` and `delete` that the id is unknown. A `ValueError` is a refusal. Any other exception is an
  error of the object.
"""
OBJECTS_PLACES = """
## A place of its own

Each case has to have a memory of its own. What the constructor takes decides how:

1. A parameter for a file, a folder or a URL gets the case's own: a file that does not exist, with the ending of the
   default; an empty folder; `sqlite:///FILE`. It is a `Path` where the annotation or the default is one.
2. A parameter for a server, or a URL whose default is not one of SQLite, means that all cases share one memory. So does
   `--target-option NAME=PLACE` for a parameter of the first kind, and `--target-option shared=true`. Then each case has
   users that nobody else has, and nothing is deleted but what these users have.
3. Otherwise the object lives in a process of its own, whose working folder and `HOME` are an empty folder. The process
   has imported [what `memstory_preload` names](../how-to/test-a-class.md#where-an-import-takes-long) in the module of
   the class or function, and imports all else itself.

A parameter for a user makes an object for each user. `--target-option NAME=VALUE` fills any other parameter. A restart
makes the object again, in the same place.
"""
OBJECTS_PROMISES = """
## What the signatures promise

A method promises what it is for, and a parameter too: `delete` deletion, a user in `add` and `search` that users are
apart, `metadata` that metadata comes back, a filter that a search obeys it, a session that sessions are apart, a place
that memories outlive a restart, and an `add` of a text that the text is kept as it is (one of `messages` does not). A
story that needs only this runs, and fails where a promise does not hold.

## What is found out

What nothing promises may hold all the same: that a text comes back letter for letter, that two processes can have the
memory open. When a story needs such a thing, and a test of [the suite for
adapters](../how-to/test-your-own-memory.md#check-the-adapter) can tell, a run tries it once on throw-away users. The
story runs if it holds, and is unsupported if not; the end of the run says what was found. `memstory probe
module:Name` tries everything, the promises too, and prints what holds, what does not and why. A run does the same for a
[table](tables.md), beside what it maps.

The attribute `memstory_capabilities` of the class, a list of [capabilities](targets.md#capabilities), says it all
instead; then nothing is tried.
"""
CLI_HEAD = """
# The command line

What `memstory COMMAND --help` says.
"""


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of markdown."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def code(text: str) -> str:
    """Return `text` as code within a line."""
    return f"`{text}`"


def block(text: str, language: str = "yaml") -> str:
    """Return `text` as a block of code."""
    return f"```{language}\n{text.strip()}\n```"


def resolved(schema: Schema) -> Schema:
    """Return `schema` with what it refers to."""
    reference = schema.get("$ref")
    inner = resolved(grammar()["$defs"][reference.rpartition("/")[2]]) if reference else {}
    return {**inner, **schema}


def keys(schema: Schema, before: str = "") -> Iterator[list[str]]:
    """Yield a row for each key of a mapping and of the mappings in it: its name and what it means."""
    whole = resolved(schema)
    for name, inner in whole.get("properties", {}).items():
        needed = ", needed" if name in whole.get("required", ()) else ""
        deeper = resolved(inner)
        yield [code(before + name) + needed, meaning(deeper)]
        if inner.get("$ref", "").rpartition("/")[2] not in {"expect", "step", "duration"} and name != "expect":
            listed = deeper["items"] if isinstance(deeper.get("items"), dict) else {}
            yield from keys({"properties": deeper.get("properties", {}), "required": deeper.get("required", ())},
                            f"{before}{name}.") if "object" in str(deeper.get("type")) else ()  # fmt: skip
            if listed and "$ref" not in listed:
                yield from keys(listed, f"{before}{name}[].")


def meaning(schema: Schema) -> str:
    """Return what a key means, with the values that it may have where they are few."""
    allowed = [value for value in schema.get("enum", ()) if value is not None]
    values = f" One of {', '.join(code(str(value).lower()) for value in allowed)}." if allowed else ""
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return str(schema.get("description", "")) + values + (f" A number {' '.join(bounds)}." if bounds else "")


def page(*parts: str) -> str:
    """Return a page of its parts."""
    return "\n\n".join(part.strip() for part in parts if part)


def words(named: Mapping[str, str]) -> list[list[str]]:
    """Return rows of names with their meanings."""
    return [[code(name), text] for name, text in named.items()]


def checks(registry: Registry[Check]) -> list[list[str]]:
    """Return rows of checks with their meanings and examples."""
    return [[code(one.name), one.summary, code(one.example)] for one in registry.values()]


def story_page() -> str:
    """Return the page on the keys of a story."""
    own = grammar()["properties"]
    elsewhere = ("`steps[]", "`perturb", "`model", "`retrieval")
    sections = [
        part
        for name, title in (("retrieval", "A retrieval task"), ("perturb", "Perturbations"))
        for part in (f"## {title}\n\n{meaning(resolved(own[name]))}", table(KEYS, keys(own[name], f"{name}.")))
    ]
    units = ", ".join(map(code, grammar()["$defs"]["duration"]["properties"]))
    return page(
        STORY,
        table(KEYS, [row for row in keys(grammar()) if not row[0].startswith(elsewhere)]),
        *sections,
        MODEL.format(meaning=meaning(own["model"])),
        table(["key of a rule", "meaning"], keys(own["model"]["items"])),
        DURATIONS.format(units=units, datasets=", ".join(map(code, DATASETS))),
    )


def steps_page() -> str:
    """Return the page on steps."""
    listed = [[f"[{word.name}](#{word.name})", word.summary, ", ".join(map(code, word.fields)) or "–"]
              for word in WORDS.values()]  # fmt: skip
    results = grammar()["$defs"]["expect"]["properties"].items()
    return page(
        STEPS_HEAD,
        table(["beside an operation", "meaning"], [[code(name), meaning(inner)] for name, inner in MODIFIERS.items()]),
        table(["step", "what it does", "its result has"], listed),
        "What `expect:` can check. The last five work with every step, `context_tokens` with a context:",
        table(["result", "what it is"], [[code(name), meaning(resolved(inner))] for name, inner in results]),
        *map(_step, WORDS.values()),
    )


def _step(word: Word) -> str:
    schema = grammar()["$defs"]["step"]["properties"][word.name]
    rows = [row for row in keys(schema) if "steps[]" not in row[0]]
    return page(
        f"## {word.name}",
        meaning(resolved(schema)),
        table(KEYS, rows) if rows else "",
        f"Expect: {', '.join(map(code, word.expectable))}.",
        block(word.example),
    )


def matchers_page() -> str:
    """Return the page on what a story can assert about a result."""
    matchers = [[code(one.name), one.summary, *map(code, (one.example, repr(one.fits), repr(one.misfits)))]
                for one in MATCHERS.values()]  # fmt: skip
    return page(
        MATCHERS_HEAD,
        table(["matcher", "holds if", "written", "for", "not for"], matchers),
        "`same_as` speaks of a name that a step has saved; here it stands for `'m1'`.",
        HITS.format(fields=", ".join(map(code, HIT_FIELDS))),
        table(CHECKS, checks(HIT_CHECKS)),
        CALLS,
        table(CHECKS, checks(CALL_CHECKS)),
        METRICS_HEAD,
        table(["metric", "what it is"],
              words({f"{one.name}@k" if one.is_cut else one.name: one.summary for one in METRICS.values()})),
    )  # fmt: skip


def outcomes_page() -> str:
    """Return the page on outcomes."""
    rows = [[f"{SIGNS[name]} {code(name)}", *OUTCOMES[name]] for name in get_args(Outcome)]
    tail = OUTCOMES_TAIL.format(order=", ".join(map(code, WORST_FIRST)), harms=", ".join(map(code, HARMS)))
    return page(OUTCOMES_HEAD, table(["outcome", "pytest shows", "meaning", "who acts"], rows), tail)


class Recorder:
    """Takes the options of the plugin as a parser of pytest does, and keeps them."""

    def __init__(self) -> None:
        self.options: list[list[str]] = []
        self.settings: list[list[str]] = []

    def getgroup(self, *_: str) -> Recorder:
        return self

    def addoption(self, name: str, **about: Any) -> None:
        written = f"{name} {about['metavar']}" if "metavar" in about else name
        self.options.append([code(written), about["help"].replace("%(default)g", f"{about.get('default')}")])

    def addini(self, name: str, text: str, *, type: str, default: object) -> None:  # noqa: A002  (pytest's own name)
        self.settings.append([code(name), text, code(type)])


_CACHE = (
    "`MEMSTORY_CACHE`",
    (
        "the folder for what can be made again: data sets, weights, and the embeddings of texts of stories and data "
        "sets, by model (default: `memstory` in `XDG_CACHE_HOME`, or `~/.cache/memstory`); it may be deleted"
    ),
)


def options_page() -> str:
    """Return the page on options."""
    places = (BEIR, *map(place_of, SETS))
    recorder = Recorder()
    add_options(recorder)  # type: ignore[arg-type]  # the part of a parser that options need
    return page(
        OPTIONS_HEAD,
        table(["option", "meaning"], recorder.options),
        "In `pytest.ini`, or `[tool.pytest.ini_options]` of `pyproject.toml`:",
        table(["setting", "meaning", "type"], recorder.settings),
        NO_TARGET,
        "In the environment:",
        table(["variable", "meaning"], [_CACHE, *([code(at.variable), f"where {at.holds} is"] for at in places)]),
    )


def targets_page() -> str:
    """Return the page on targets and capabilities."""
    return page(
        TARGETS_HEAD,
        table(["name", "what it is", "options"], _targets()),
        CAPABILITIES_HEAD,
        "Found in the steps and expectations of a story:",
        table(ABLE, able(operations())),
        "Shown by no step; a story names them under `requires:`:",
        table(ABLE, able(FEATURES)),
        "Whatever follows the dot is the target's own word:",
        table(ABLE, able({f"{name}.": text for name, text in families().items()})),
    )


def objects_page() -> str:
    """Return the page on how the parts of somebody's object are known."""

    def listed(named: Mapping[str, Sequence[str]]) -> list[list[str]]:
        return [[name.replace("_", " "), ", ".join(map(code, names))] for name, names in named.items()]

    given = {role: ", ".join(map(code, (name for name, roles in GIVEN.items() if role in roles))) for role in ARGUMENTS}
    arguments = [[*row, given[role]] for row, role in zip(listed(ARGUMENTS), ARGUMENTS, strict=True)]
    return page(
        OBJECTS_HEAD,
        OBJECTS_METHODS.format(endings=", ".join(f"`_{ending}`" for ending in ENDINGS)),
        table(["operation", "names"], listed(METHODS)),
        OBJECTS_ARGUMENTS,
        table(["what", "names of parameters", "given to"], arguments),
        OBJECTS_RESULTS.format(lists=", ".join(map(code, LISTS))),
        table(["part of a hit", "keys or attributes"], listed(FIELDS)),
        OBJECTS_PLACES,
        table(["place", "names of the constructor's parameters"], listed(PLACES)),
        OBJECTS_PROMISES,
    )


def able(named: Mapping[str, str]) -> list[list[str]]:
    """Return rows of capabilities with their meanings, and what `TargetContract` shows of each or why it does not."""
    shown = {word: "; ".join(name.removeprefix("test_").replace("_", " ") for name in names)
             for word, names in CHECKED.items()}  # fmt: skip
    told = {**shown, **{word: f"not shown: {reason}" for word, reason in ELSEWHERE.items()}}
    return [
        [code(f"{name}…" if name.endswith(".") else name), text, told.get(name, "not shown")]
        for name, text in named.items()
    ]


def _targets() -> Iterator[list[str]]:
    for name in (*known_names(), *(f"control:{fault}" for fault in FAULTS)):
        try:
            members = load_targets([name])
        except SetupError as error:
            sys.stderr.write(f"{name} is left out: {error}\n")
            continue
        if list(members) != [name]:
            yield [code(name), f"a group: {', '.join(map(code, members))}", ""]
            continue
        words = members[name].capabilities({})
        options = sorted(word.removeprefix("option.") for word in words if word.startswith("option."))
        about = (type(members[name]).__doc__ or "").strip().splitlines()
        yield [code(name), about[0] if about else "", ", ".join(map(code, options))]


def _adapters() -> Iterator[tuple[str, AdapterFactory]]:
    for name in sorted(entry.name for entry in entry_points(group=GROUP) if entry.value.startswith("memstory.")):
        yield name, load_targets([name])[name]


def _backends() -> Iterator[list[str]]:
    """Yield a row for each adapter: its library at the version of the pins, and what follows from its capabilities."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    files = [(ROOT / place).read_text("utf-8") for place in ("constraints.txt", "tests/backends/constraints.txt")]
    pinned = "\n".join([*files, *project["dependency-groups"]["graph"]])
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", pinned, re.MULTILINE))
    for name, factory in _adapters():
        can = factory.capabilities({})
        extra = name if name in extras else "reference" if isinstance(factory, EmbeddingFactory) else None
        library = re.split(r"[^\w.-]", extras[extra][0])[0] if extra else ""
        yield [
            code(name),
            f"{library} {pins[library]}" if library else "comes with Python",
            code(f".[{extra}]") if extra else "-",
            "yes" if "persistent" in can else "no",
            ", ".join(word.removeprefix("get.") for word in ("get.id", "get.key") if word in can) or "-",
            ", ".join(text for word, text in NOTABLE.items() if word in can),
        ]


def backends_page() -> str:
    """Return the page on other people's backends with the table of adapters made again."""
    before, _, rest = BACKENDS.read_text("utf-8").partition(TABLE_BEGINS)
    after = rest.partition(TABLE_ENDS)[2]
    differing = [
        [code(name), setting, why]
        for name, factory in _adapters()
        for setting, why in getattr(factory.adapter, "not_default", {}).items()
    ]
    settings = table(["target", "setting that differs from the default", "default, and why"], differing)
    return f"{before}{TABLE_BEGINS}\n\n{table(BACKENDS_HEAD, _backends())}\n\n{settings}\n\n{TABLE_ENDS}{after}"


def cli_page() -> str:
    """Return the page on the commands."""
    listed = [[f"[{name}](#memstory-{name})", text] for name, text in COMMANDS.items()]
    return page(CLI_HEAD, table(["command", "what it does"], listed), *map(_command, COMMANDS))


def _command(name: str) -> str:
    command = load_command(name)
    rows = [
        [code(", ".join(action.option_strings) or str(action.metavar or action.dest)), action.help or ""]
        for action in parser_of(name, command)._actions  # noqa: SLF001  (argparse has no other way to list them)
        if not isinstance(action, argparse._HelpAction)  # noqa: SLF001  (the same)
    ]
    lines = command.about.split("\n")
    return page(
        f"## memstory {name}",
        " ".join(line for line in lines if not line.startswith(" ")),
        "\n".join(f"- {line.strip()}" for line in lines if line.startswith(" ")),
        table(["argument", "meaning"], rows) if rows else "",
        block(dedent(command.examples.strip().partition("\n")[2]), "text"),
        f"{command.exit_codes[0].upper()}{command.exit_codes[1:]}.",
    )


TABLES: Mapping[str, str] = {
    "mcpTarget": 'A target with `type = "mcp"`',
    "httpTarget": 'A target with `type = "http"`',
    "classTarget": "A target that names a class",
    "operation": "An operation, such as `[targets.NAME.search]`",
    "mcpCall": "A call over MCP",
    "httpCall": "A call over HTTP",
    "callKeys": "Any call",
    "rows": "`reply`: how rows are read",
}
"""The parts of the tables' schema, with their headings."""


def tables_page() -> str:
    """Return every key of the tables of memstory.toml, from their schema."""
    intro = "How a table is written, from nothing to a run: [MCP](../how-to/mcp.md), [REST](../how-to/http.md)."
    return "\n\n".join(["# The tables of memstory.toml", intro, *map(_keys_of_table, TABLES)])


def _keys_of_table(part: str) -> str:
    parts = table_schema()["$defs"]
    whole = ("server", part, "target") if part in ("mcpTarget", "httpTarget") else (part,)
    keys = {name: key for one in whole for name, key in parts[one].get("properties", {}).items()}
    rows = [[f"`{name}`", key["description"]] for name, key in keys.items() if key.get("description")]
    return f"## {TABLES[part]}\n\n{table(['key', 'meaning'], rows)}"


def python_page() -> str:
    """Return the names that other code may import, by what they are for."""
    sections = [
        f"## {title}\n\n{intro.strip()}\n\n{table(['name', 'what it is'], map(_name, names.split()))}"
        for title, (intro, names) in PYTHON.items()
    ]
    methods = [
        [code(f"{name}{_signature(method)}"), first_line(method)]
        for kind in (memstory.Target.__base__, memstory.Target)
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_") and name != "perform"
    ]
    head = "## The operations of a target\n\nAll are `async`, but for `load`, `take_requests` and `usage`."
    return page(PYTHON_HEAD, *sections, head, table(["operation", "what it does"], methods))


def _name(name: str) -> list[str]:
    value = getattr(memstory, name)
    waits = "await " if inspect.iscoroutinefunction(value) else ""
    written = f"{waits}{name}{_signature(value)}" if name in WITH_FIELDS or inspect.isfunction(value) else name
    return [code(written), ALIASES.get(name) or first_line(value)]


def _signature(function: Callable[..., Any]) -> str:
    names = [
        name + "=…" * (one.default is not one.empty) for name, one in inspect.signature(function).parameters.items()
    ]
    return f"({', '.join(name for name in names if name != 'self')})"


def first_line(value: object) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


BACKENDS = ROOT / "docs/how-to/backends.md"
BACKENDS_HEAD = ["target", "the library, as tested", "install", "keeps on disk", "gets and updates by", "can also"]
TABLE_BEGINS = "<!-- made by `python docs/make_reference.py` from the adapters -->"
TABLE_ENDS = "<!-- end of what is made -->"
NOTABLE = {
    "search.lexical": "keyword search",
    "search.where": "filters",
    "scope.session": "sessions",
    "search.min_score": "lowest score",
    "search.explain": "explained scores",
    "add.batch_atomic": "atomic batches",
    "context": "the text for a prompt",
    "add.infer": "a model decides what is kept",
}
"""What the table of backends says of a capability."""

PAGES: Mapping[str, Callable[[], str]] = {
    "python": python_page,
    "story": story_page,
    "steps": steps_page,
    "matchers": matchers_page,
    "outcomes": outcomes_page,
    "options": options_page,
    "targets": targets_page,
    "objects": objects_page,
    "tables": tables_page,
    "cli": cli_page,
}


def pages() -> Mapping[Path, str]:
    """Return the text of every page by its place, and of the schemas of stories and of results.json."""
    made = {FOLDER / f"{name}.md": f"{NOTICE}\n\n{make()}\n" for name, make in PAGES.items()}
    results = json.dumps(results_schema(), indent=1, ensure_ascii=False)
    return {**made, BACKENDS: backends_page(), SCHEMA: schema_text(), FOLDER / "results.schema.json": f"{results}\n"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or say which are not current; 1 if any is not."""
    parser = argparse.ArgumentParser(description="Write docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing, say what is not current")
    check = parser.parse_args(arguments).check
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        sys.stdout.write(f"{'not current' if check else 'wrote'}: {path.name}\n")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
