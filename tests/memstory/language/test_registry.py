"""A word that is declared in one place is known everywhere: proved with a matcher and a step that only exist here."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from jsonschema import Draft202012Validator

from memstory.cli import main
from memstory.contract.errors import NotSupported
from memstory.contract.target import Hit, Query, Request, Scope, Target
from memstory.controls import Oracle, OracleFactory
from memstory.language.grammar import grammar, schema_text
from memstory.language.matchers import MATCHERS, Finding, matcher
from memstory.language.stories import InvalidStory, parse_stories
from memstory.language.words import WORDS, Word
from memstory.language.words.memories import hits_of
from memstory.language.words.word import in_list, read_named
from memstory.playing import play

ROOT = Path(__file__).parents[3]
ENDING = """\
story: ending
title: A text ends as it should
steps:
  - add: The ferry leaves at nine
    save: {ferry: id}
  - get: "${ferry}"
    expect: {hits: {first: {text: {stops_with: %s}}}}
"""
RECOLLECTING = """\
story: recollecting
title: What is asked for is recollected
steps:
  - add: [{text: The ferry leaves at nine, save: ferry}, Tea is steeped for two minutes]
  - recollect: when does the ferry leave
    save: {best: id}
    expect: {hits: {first: ferry, count: 1}}
  - recollect: {words: ferry}
    expect: {hits: {first: {id: "${best}"}}}
"""


class Recollect(TypedDict):
    words: Annotated[str, "What is asked."]


class Declared(Target):
    async def recollect(self, words: str, scope: Scope) -> Sequence[Hit]:
        """What Target would declare."""
        raise NotSupported("recollect")


class Recollecting(Oracle):
    async def recollect(self, words: str, scope: Scope) -> Sequence[Hit]:
        return (await self.search(Query(text=words), scope))[:1]


class RecollectingFactory(OracleFactory):
    name = "recollecting"

    def capabilities(self, options):
        return super().capabilities(options) | {"recollect"}

    def target(self):
        return Recollecting()


@pytest.fixture
def stops_with():
    @matcher(
        "stops_with",
        summary="text: closes with this",
        grammar={"type": "string"},
        example="{stops_with: nine}",
        fits="at nine",
        misfits="at ten",
    )
    def judge(value, end, _context):
        return Finding(holds=value.endswith(end), says=f"is '{value}', of which the end was judged")

    yield MATCHERS["stops_with"]
    MATCHERS.remove("stops_with")


@pytest.fixture
def recollect(monkeypatch):
    monkeypatch.setattr(Target, "recollect", Declared.recollect, raising=False)
    yield WORDS.add(
        Word(
            name="recollect",
            summary="ask for what fits some words best",
            forms="the words, or {words}",
            argument=str | Recollect,
            read=read_named("words"),
            request=lambda args, scope: Request("recollect", {"words": args["words"], "scope": scope}),
            capabilities={"recollect": "finds what fits words best"},
            results={"hits": hits_of},
            path_in_record=in_list,
            example="- recollect: the ferry",
        )
    )
    WORDS.remove("recollect")


def played(text, factory):
    (story,) = parse_stories(text, "f.yaml")
    assert not isinstance(story, InvalidStory), [str(error) for error in story.errors]
    return asyncio.run(play(story, factory))


def typed(capsys, *words):
    code = main(list(words))
    return code, capsys.readouterr().out


def page(name):
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs/make_reference.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.PAGES[name]()


@pytest.mark.usefixtures("stops_with")
def test_a_matcher_is_judged_in_a_run():
    assert played(ENDING % "nine", OracleFactory()).outcome == "passed"
    failed = played(ENDING % "ten", OracleFactory())
    assert failed.outcome == "failed"
    assert "of which the end was judged" in failed.reason


@pytest.mark.usefixtures("stops_with")
def test_a_matcher_is_validated_where_it_is_written(tmp_path, capsys):
    path = tmp_path / "a.story.yaml"
    path.write_text(ENDING % "[1]")
    code, out = typed(capsys, "validate", str(path))
    assert code == 1
    assert "a.story.yaml:7:48: 'stops_with' must be a text, but is a list [1]" in out
    path.write_text((ENDING % "nine").replace("stops_with", "stops_wth"))
    assert "unknown matcher 'stops_wth'. Did you mean 'stops_with'?" in typed(capsys, "validate", str(path))[1]


@pytest.mark.usefixtures("stops_with")
def test_a_matcher_is_listed_and_documented(capsys):
    assert "text: closes with this" in typed(capsys, "matchers")[1]
    assert "| `stops_with` | text: closes with this | `{stops_with: nine}` | `'at nine'` |" in page("matchers")


@pytest.mark.usefixtures("stops_with")
def test_a_matcher_is_in_the_schema_for_editors(capsys):
    schema = json.loads(typed(capsys, "schema")[1])
    story = {"story": "A", "title": "T", "steps": [{"say": "x", "expect": {"answer": {"stops_with": "x"}}}]}
    assert Draft202012Validator(schema).is_valid(story)
    story["steps"][0]["expect"]["answer"] = {"stops_with": 5}
    assert not Draft202012Validator(schema).is_valid(story)


def test_without_the_matcher_nothing_knows_it():
    (story,) = parse_stories(ENDING % "nine", "f.yaml")
    assert "unknown matcher 'stops_with'. Did you mean 'starts_with'?" in str(story.errors[0])
    assert "stops_with" not in schema_text()


@pytest.mark.usefixtures("recollect")
def test_a_step_is_carried_out_saved_from_and_judged():
    assert played(RECOLLECTING, RecollectingFactory()).outcome == "passed"
    failed = played(RECOLLECTING.replace("count: 1", "count: 2"), RecollectingFactory())
    assert (failed.outcome, "hits count 1" in failed.reason) == ("failed", True)


@pytest.mark.usefixtures("recollect")
def test_a_step_asks_for_its_capability(tmp_path, capsys):
    refused = played(RECOLLECTING, OracleFactory())
    assert refused.outcome == "unsupported"
    assert "recollect" in refused.reason
    path = tmp_path / "a.story.yaml"
    path.write_text(RECOLLECTING)
    out = typed(capsys, "explain", str(path), "--target", "control:oracle")[1]
    assert "finds what fits words best" in out
    assert "step 2 (recollect), line 5" in out


@pytest.mark.usefixtures("recollect")
def test_a_step_is_validated_where_it_is_written(tmp_path, capsys):
    path = tmp_path / "a.story.yaml"
    path.write_text(RECOLLECTING)
    assert typed(capsys, "validate", str(path))[0] == 0
    path.write_text(RECOLLECTING.replace("recollect: {words: ferry}", "recolect: {words: ferry}"))
    assert "unknown step 'recolect'. Did you mean 'recollect'?" in typed(capsys, "validate", str(path))[1]
    path.write_text(RECOLLECTING.replace("hits: {first: ferry, count: 1}", "answer: nine"))
    assert "'recollect' has no 'answer'; its result has: hits" in typed(capsys, "validate", str(path))[1]


@pytest.mark.usefixtures("recollect")
def test_a_step_is_listed_and_documented(capsys):
    assert "ask for what fits some words best" in typed(capsys, "steps")[1]
    shown = typed(capsys, "steps", "recollect")[1]
    assert [line.split() for line in shown.splitlines() if line.startswith(("expect:", "words"))] == [
        ["expect:", "hits,", "error,", "latency_ms,", "eventually,", "refusal"],
        ["words", "What", "is", "asked."],
    ]
    assert "Ask for what fits some words best: the words, or {words}." in page("steps")
    assert "| `recollect` | finds what fits words best |" in page("targets")


@pytest.mark.usefixtures("recollect")
def test_a_step_is_in_the_schema_for_editors():
    schema = grammar()["$defs"]["step"]["properties"]["recollect"]
    assert (schema["type"], schema["additionalProperties"]) == (["string", "object"], False)
    assert schema["properties"] == {"words": {"description": "What is asked.", "type": "string"}}


def test_without_the_step_nothing_knows_it():
    (story,) = parse_stories(RECOLLECTING, "f.yaml")
    assert "unknown step 'recollect'." in str(story.errors[0])
    assert "recollect" not in schema_text()


def test_modifiers_are_not_listed_as_steps_but_a_slip_of_one_is_seen():
    (story,) = parse_stories("story: A\ntitle: T\nsteps: [{say: x, sav: {a: answer}}]\n", "f.yaml")
    message = str(story.errors[0])
    assert "unknown step 'sav'. Did you mean 'save'? Known: add, advance, at, context," in message
    listed = message.partition("Known: ")[2].rstrip(".").split(", ")
    assert set(listed) == set(WORDS)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="the matcher 'equals' is declared twice"):
        matcher("equals", summary="x", grammar={}, example="x")(lambda *_: None)
    with pytest.raises(ValueError, match="the step 'say' is declared twice"):
        WORDS.add(WORDS["say"])


def test_a_step_whose_result_no_expectation_knows_is_refused_at_once():
    with pytest.raises(ValueError, match="'recount' has a result 'number', which is not an expected field"):
        Word(name="recount", summary="x", example="x", argument=str, results={"number": len})


def test_the_schema_that_editors_read_is_what_the_words_say():
    written = (ROOT / "harness/memstory/story.schema.json").read_text("utf-8")
    assert written == schema_text(), "make it again: python docs/make_reference.py"
