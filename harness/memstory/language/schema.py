"""The grammar of stories: the keys of a story, with every word and check as it declares itself, in one JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from memstory.language.matchers import CALL_CHECKS, EXPECTABLE, HIT_CHECKS, HIT_FIELDS, MATCHERS, METRICS
from memstory.language.matchers.calls import CALL
from memstory.language.matchers.check import Check
from memstory.language.matchers.groups import NUMBER, VALUE
from memstory.language.matchers.means import metrics_grammar
from memstory.language.registry import Registry
from memstory.language.words import WORDS
from memstory.language.words.parts import (
    NAME,
    STEP,
    VECTOR,
    Schema,
    choice,
    count,
    free,
    keys,
    listing,
    name_of,
    text,
)  # fmt: skip
from memstory.language.words.step_parsing import MODIFIERS
from memstory.language.words.times import DURATION
from memstory.target import Json

_WIDTH: Final = 150
_NOT_BLANK = r"\S"
_TEXTS: Schema = {"type": ["string", "array"], "items": {"type": "string"}}
_LEVELS: Schema = {
    "type": ["integer", "array"], "minimum": 0, "minItems": 1, "uniqueItems": True,
    "items": {"type": "integer", "minimum": 0},
}  # fmt: skip
_CONTROLS: Mapping[str, str] = {
    "nothing": "A memory that remembers nothing.",
    "random": "A memory that finds by chance.",
    "grep": "A memory that finds by substring.",
    "everything": "A memory that returns all there is.",
    "oracle": "A perfect small memory.",
    "amnesiac": "The oracle, losing each third memory.",
    "leaky": "The oracle, keeping no users apart.",
    "stale": "The oracle, telling old values.",
    "undeleting": "The oracle, keeping what was deleted.",
    "duplicating": "The oracle, remembering everything twice.",
}
_RULE = keys(
    "key of a rule",
    {
        "when": keys(
            "condition of a rule",
            {
                "purpose": text("Which part of the memory asks."),
                "contains": {"description": "Texts that the prompt must hold.", **_TEXTS},
                "tool_result_contains": {"description": "A text that the last tool result must hold.", **_TEXTS},
            },
            description="What must hold of the call; nothing fits every call.",
            type="object",
        ),
        "reply": keys(
            "key of a reply",
            {
                "text": text("What it says."),
                "thinking": text("What it thinks."),
                "tool_calls": listing(
                    "The tools that it calls.",
                    keys(
                        "tool call of a reply",
                        {"name": text("The tool."), "args": free("Its arguments.")},
                        "name",
                        type="object",
                    ),
                ),
            },
            description="What the model says: a text, or {text, tool_calls, thinking}.",
            type=["string", "object"],
            minProperties=1,
        ),
    },
    "reply",
    type="object",
)
_RETRIEVAL = keys(
    "key of a retrieval",
    {
        "corpus": name_of("JSONL file of documents, relative to the story."),
        "queries": name_of("JSONL file of queries with their relevant ids."),
        "dataset": name_of("A known data set, such as locomo."),
        "path": name_of("Where the data set is."),
        "k": count("How many results are looked at.", minimum=1, maximum=1000),
        "kind": text("The kind of memory to add the documents as."),
    },
    description="Index a corpus, ask every query, score what comes back by gold ids.",
    type="object",
)
_PERTURB = keys(
    "perturbation",
    {
        "distractors": {"description": "So many unrelated memories beside the corpus.", **_LEVELS},
        "stale_repeats": {"description": "So many outdated versions of each document.", **_LEVELS},
        "paraphrase": {"description": "Ask the listed variants of each query.", "type": "boolean"},
        "shuffle": {"description": "Add the documents in a seeded random order.", "type": "boolean"},
        "seed": count("The seed of what is random."),
    },
    description="What is made harder; a list of levels gives a curve.",
    type="object",
    minProperties=1,
)
_ROW: Schema = {
    "title": "row", "type": "object", "minProperties": 1, "propertyNames": NAME,
    "properties": {
        "row": text("The row's name in ids.", title="row id", pattern="^[A-Za-z0-9][A-Za-z0-9_.]{0,63}$",
                    examples=["dvorak", "case_2"]),
    },
}  # fmt: skip


def changes() -> tuple[int, ...]:
    """Return what tells whether the grammar is still as it was."""
    registries: tuple[Registry[Any], ...] = (WORDS, MATCHERS, HIT_CHECKS, CALL_CHECKS, EXPECTABLE, METRICS)
    return tuple(registry.changes for registry in registries)


def grammar() -> Mapping[str, Json]:
    """Return the JSON Schema of a story, with what the registries hold now."""
    return _grammar(changes())


@lru_cache(maxsize=1)
def _grammar(_changes: tuple[int, ...]) -> Mapping[str, Json]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:memstory:story",
        "description": "What a memory must do, as steps with expectations, or as a retrieval task with metrics.",
        **keys("story", _story_keys(), "story", "title", type="object"),
        "$defs": {**_step_parts(), **_expectation_parts()},
    }


def _story_keys() -> Schema:
    return {
        "story": text(
            "The story's id, unique in the run: letters, digits, '-' and '_', a letter first.",
            title="story id",
            pattern="^[A-Za-z][A-Za-z0-9_-]{0,63}$",
            examples=["S6", "late_update"],
        ),
        "title": text(
            "What the memory must do, in one sentence.",
            pattern=_NOT_BLANK,
            examples=["Save a preference, then recall it"],
        ),
        **_selecting_keys(),
        "options": free("Options of the target, such as {toolset: dual}.", propertyNames=NAME),
        "vectors": free(
            "The vector that stands for each text, for exact numbers; `vector:` beside a text does the same.",
            additionalProperties=VECTOR,
        ),
        "model": listing(
            "A scripted language model: the first rule that fits gives the reply, whatever came before.", _RULE
        ),
        "steps": listing("What is done, in order.", STEP, minItems=1),
        "retrieval": _RETRIEVAL,
        "perturb": _PERTURB,
        "expect": keys(
            "expectation of a retrieval story",
            {
                "metrics": metrics_grammar(),
                "latency_ms": {"description": "The mean time of a search, in milliseconds.", **NUMBER},
            },
            description="What a retrieval story must reach.",
            type="object",
            minProperties=1,
        ),
        **_running_keys(),
    }


def _selecting_keys() -> Schema:
    return {
        "tags": listing(
            "Words to select by: each becomes a pytest marker.",
            {"title": "tag", "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$", "examples": ["topics", "phase2"]},
            uniqueItems=True,
        ),
        "covers": listing(
            "The requirements that this story shows.",
            {"title": "requirement id", "type": "string", "pattern": "^[A-Z]+-[0-9]+$", "examples": ["L-15", "SEC-4"]},
            uniqueItems=True,
        ),
        "targets": listing(
            "Run only on these targets; for stories about one system's own wording.",
            {"type": "string", "minLength": 1},
            minItems=1,
        ),
        "requires": listing(
            "Capabilities that the steps do not show; whatever they do show is found by itself.",
            {"type": "string", "minLength": 1},
        ),
    }


def _running_keys() -> Schema:
    outcome = ("pass", "fail")
    return {
        "trials": count("How often the story runs, each time with a seed of its own.", minimum=1, maximum=1000),
        "pass": keys(
            "rule of passing",
            {"at_least": count("The least number of trials that must pass.", minimum=1)},
            "at_least",
            description="How many trials must pass; all, if it is not said.",
            type="object",
        ),
        "settle": choice(
            "`manual`: the harness does not wait for background work by itself, only at `settle` steps.",
            "auto",
            "manual",
        ),
        "control": free(
            "What a control is meant to do here, and why: {nothing: pass, because: …}.",
            title="control",
            required=["because"],
            minProperties=2,
            properties={
                "because": text("Why the control passes or fails.", pattern=_NOT_BLANK,
                                examples=["an empty memory must answer so"]),
                **{name: choice(description, *outcome) for name, description in _CONTROLS.items()},
            },
            additionalProperties=choice("A memory with one narrow fault.", *outcome),
        ),
        "redact": choice(
            "What is taken out of the results before anything is written: `secrets`, which is usual, or `texts`, all "
            "that was said or remembered.",
            "secrets",
            "texts",
        ),
        "notes": text("Free text for readers."),
        "vars": free(
            "Values that ${name} stands for in this story; $${name} is the text ${name} itself, and no reference.",
            propertyNames=NAME,
        ),
        "defaults": free(
            "Values that ${name} stands for in rows of `parametrize` that do not give their own.", propertyNames=NAME
        ),
        "parametrize": listing(
            "One story for each row; ${name} stands for the row's value. `row` names it in ids.", _ROW, minItems=1
        ),
    }  # fmt: skip


def _step_parts() -> Schema:
    words = {
        word.name: {
            "description": _sentence(word.summary, word.forms),
            "title": f"argument of {word.name}",
            **word.grammar,
        }
        for word in WORDS.values()
    }
    expected = {one.name: {"description": _sentence(one.summary), **one.grammar} for one in EXPECTABLE.values()}
    return {
        "name": {
            "title": "name", "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "examples": ["language", "top_k"],
        },
        "duration": DURATION,
        "step": keys("step", {**MODIFIERS, **words}, description="One operation, with modifiers."),
        "expect": keys("expected field", expected, type="object", minProperties=1),
    }  # fmt: skip


def _expectation_parts() -> Schema:
    return {
        "hits": keys("check of hits", _described(HIT_CHECKS), type="object", minProperties=1),
        "hit_fields": keys("field of a hit", dict(HIT_FIELDS), minProperties=1),
        "tool_calls": keys("check of tool calls", _described(CALL_CHECKS), type=["array", "object"], minProperties=1,
                           items={"$ref": "#/$defs/call"}),
        "call": CALL,
        "textual": {"type": ["string", "object"], "$ref": "#/$defs/matchers"},
        "number": {"type": ["number", "object"], "$ref": "#/$defs/matchers"},
        "value": {"properties": _described(MATCHERS), "additionalProperties": VALUE},
        "matchers": {
            "minProperties": 1, "propertyNames": {"title": "matcher", "enum": list(MATCHERS)}, **VALUE,
        },
    }  # fmt: skip


def _described(checks: Registry[Check]) -> Schema:
    return {one.name: {"description": _sentence(one.summary), **one.grammar} for one in checks.values()}


def _sentence(summary: str, forms: str = "") -> str:
    said = f"{summary}: {forms}" if forms else summary
    return f"{said[0].upper()}{said[1:]}."


def schema_text() -> str:
    """Return the grammar as the file that editors read."""
    return f"{_written(grammar(), '')}\n"


def _written(value: Json, indent: str) -> str:
    """Return JSON in lines that are filled, but never shared by parts that need several."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(flat) <= _WIDTH:
        return flat
    deeper = f"{indent}  "
    pairs = value.items() if isinstance(value, dict) else (("", inner) for inner in value)
    lines: list[str] = []
    for key, inner in pairs:
        part = f"{json.dumps(key)}: " * bool(key) + _written(inner, deeper)
        if lines and "\n" not in lines[-1] + part and len(deeper) + len(lines[-1]) + len(part) < _WIDTH:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f",\n{deeper}".join([f"{opening}\n{deeper}{lines[0]}", *lines[1:]]) + f"\n{indent}{closing}"
