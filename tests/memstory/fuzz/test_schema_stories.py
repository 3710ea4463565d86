"""Whatever the schema of stories allows, and what is near it, is a story that can be run or a positioned message.

`MEMSTORY_FUZZ_SEED` as for damaged files; `nox -s long -- fuzz` reads many more.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memstory.case import cases_of
from memstory.commands.authoring.validate import _check_stories
from memstory.commands.story_loading import LoadedStories
from memstory.controls import CONTROLS, OracleFactory
from memstory.language.grammar import grammar
from memstory.language.reading import OUR_FAULT
from memstory.language.stories import InvalidStory, parse_stories
from memstory.language.words import WORDS
from memstory.playing import play
from memstory.running.runner import RunOptions

pytestmark = pytest.mark.doses("stories", 285, 50_000)
MOST_TRIED = 10_000
CAP = RunOptions(case_seconds=5.0, retrieval_seconds=2.0)
SLOW = frozenset({"crash", "other_process", "wait", "eventually"})
"""What starts a process or lets time pass."""

DEEPEST = 7
ODD = (
    *(None, True, False, 0, -1, 1, 10**18 - 1, -(10**17), 1.5, -0.0, 1e300, -1e308, 5e-324),
    *(
        "",
        " ",
        "x",
        "i",
        "${i}",
        "${near}",
        "${lost}",
        "$${near}",
        "(a+)+",
        "(",
        "[[a]",
        "\\",
        "\u00ad",
        "\u2028",
        "ä" * 300,
    ),
    *(
        "9" * 400 + "d",
        "0s",
        "-1s",
        "2026-05-31T10:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "0.id",
        "items.-1.id",
        "..",
        "/",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"": None},
        ["a", "a"],
        [1, "b"],
        {"a": {"a": {}}},
        {"facts": ""},
        {"steps": [{"save": "b"}]},
    ),
)
TEXTS = ("tea", "near", "${near}", "Ana likes tea.", "ferry", "user.name", "kind", "nine", "t", "30d", "1s")
NAMES = ("near", "far", "x", "text", "id")


class StoryMaker:
    """Makes one tree after another; `odd` is the share of values that nobody would write."""

    def __init__(self, random: Random, odd: float) -> None:
        self.random, self.odd = random, odd
        self.grammar = grammar()

    def story(self) -> Any:
        """Return a story of steps, or of a retrieval now and then; some begin with a memory that has a name."""
        keys = self.grammar["properties"]
        purpose = "retrieval" if self.random.random() < 0.1 else "steps"
        more = [
            key for key in keys if key not in ("story", "title", "steps", "retrieval") and self.random.random() < 0.06
        ]
        if purpose == "retrieval" and self.random.random() < 0.7:
            more.append("expect")
        tree = {"story": "S", "title": "T"} | {key: self.value(keys[key], 1) for key in (*more, purpose)}
        if isinstance(tree.get("steps"), list) and self.random.random() < 0.7:
            first = {
                "add": [{"text": "Ana likes tea.", "save": "near"}, {"text": "The ferry leaves at nine.", "twin": True}]
            }
            tree["steps"].insert(0, first)
        return tree

    def value(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Return a value that `schema` describes, or an odd one."""
        schema = self._whole(schema)
        if self.random.random() < self.odd or depth > 2 * DEEPEST:
            return self.random.choice(ODD)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if schema.get("examples") and "patternProperties" not in schema and self.random.random() < 0.5:
            return self.random.choice(schema["examples"])
        kinds = schema.get("type") or ["string", "integer", "object", "array", "boolean"]
        kind = self.random.choice(kinds if isinstance(kinds, list) else [kinds])
        if depth > DEEPEST and isinstance(kinds, list):
            kind = next((one for one in kinds if one not in ("object", "array")), kind)
        return getattr(self, f"_{kind}")(schema, depth)

    def _whole(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**self.grammar["$defs"][schema["$ref"].removeprefix("#/$defs/")], **beside}
        return schema

    def _null(self, _schema: Mapping[str, Any], _depth: int) -> None:
        return None

    def _boolean(self, _schema: Mapping[str, Any], _depth: int) -> bool:
        return self.random.random() < 0.7

    def _integer(self, schema: Mapping[str, Any], _depth: int) -> int:
        return schema.get("minimum", 0) + self.random.randrange(4)

    def _number(self, schema: Mapping[str, Any], depth: int) -> float:
        return self._integer(schema, depth) + self.random.choice((0, 0.5))

    def _string(self, schema: Mapping[str, Any], _depth: int) -> str:
        return self.random.choice(schema.get("examples") or TEXTS)

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        count = max(schema.get("minItems", 0), self.random.choice((1, 1, 2, 3)) if depth <= DEEPEST else 0)
        return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known: Mapping[str, Any] = schema.get("properties", {})
        keys = [*schema.get("required", ())]
        free = [key for key in known if key not in keys]
        most = self.random.choice((0, 1, 1, 2)) if depth <= DEEPEST else 0
        least = max(schema.get("minProperties", 0) - len(keys), 0)
        keys += self.random.sample(free, min(max(most, least), len(free), schema.get("maxProperties", 99)))
        if known.keys() >= {"add", "search", "expect"}:
            keys, known = self._step(known)
        tree = {key: self.value(known[key], depth + 1) for key in keys if key in known}
        for pattern in schema.get("patternProperties", {}).values():
            tree[self.random.choice(schema["examples"])] = self.value(pattern, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping) and (not known or self.random.random() < 0.3) and schema.get("maxProperties") != 0:
            tree[self.random.choice(NAMES)] = self.value(more, depth + 1)
        if self.random.random() < self.odd:
            tree[self.random.choice((*NAMES, *known))] = self.random.choice(ODD)
        return tree

    def _step(self, known: Mapping[str, Any]) -> tuple[list[str], Mapping[str, Any]]:
        """Return the keys of a step, one word and what stands beside it, which mostly suits it."""
        word = WORDS[self.random.choice([*WORDS])]
        beside = [key for key in ("as", "session", "save", "forbid", "expect") if self.random.random() < 0.25]
        if self.random.random() < 0.2:
            return [word.name, *beside], known
        fields = self.grammar["$defs"]["expect"]["properties"]
        expect = {**self.grammar["$defs"]["expect"], "properties": {name: fields[name] for name in word.expectable}}
        return [word.name, *(key for key in beside if key != "save" or word.fields)], {**known, "expect": expect}


def written(tree):
    # JSON is YAML, but for signs that YAML does not have as they are.
    return json.dumps(tree)


def made(seed, number):
    random = Random(f"{seed}-{number}")  # noqa: S311  (no secret)
    return StoryMaker(random, random.choice((0.0, 0.01, 0.05))).story()


@pytest.fixture
def texts(stories, seed):
    """The stories with what tells how to make each again."""
    return [(f"seed {seed}, story {number}", written(made(seed, number))) for number in range(stories)]


def is_unforeseen(failure):
    return failure.detail is not None and not failure.detail.splitlines()[-1].startswith("memstory.contract.errors.")


def test_a_story_of_the_schema_is_read_or_refused_by_positioned_messages(texts):
    outcomes = Counter()
    for name, text in texts:
        try:
            for story in parse_stories(text, "a.story.yaml", CONTROLS):
                outcomes[type(story).__name__] += 1
                if isinstance(story, InvalidStory):
                    said = [str(error) for error in story.errors]
                    assert all(0 < len(one) < 20_000 and one.startswith("a.story.yaml:") for one in said)
                    assert OUR_FAULT not in "\n".join(said)
                elif story.retrieval is None:
                    list(cases_of([story], ["a", "b"]))
                    _check_stories(
                        LoadedStories(stories=[story], invalid=(), files={"a.story.yaml": Path("a.story.yaml")})
                    )
        except BaseException as error:
            error.add_note(f"{name}: {text[:4000]}")
            raise
    assert min(outcomes["Story"], outcomes["InvalidStory"]) > len(texts) / 10, outcomes


def test_a_valid_story_of_the_schema_runs_on_the_oracle_to_an_outcome(texts, tmp_path):
    outcomes = Counter()
    quick = [one for one in texts if not any(f'"{word}"' in one[1] for word in SLOW)]
    for name, text in quick[:MOST_TRIED]:
        for story in parse_stories(text, "a.story.yaml", CONTROLS):
            if isinstance(story, InvalidStory):
                continue
            try:
                result = asyncio.run(play(story, OracleFactory(), tmp_path / "cases", trials=1, options=CAP))
                failure = result.trials[0].recording.failure
                assert not (failure and is_unforeseen(failure)), failure.detail
            except BaseException as error:
                error.add_note(f"{name}: {text[:4000]}")
                raise
            outcomes[result.outcome] += 1
    assert outcomes["passed"], outcomes
