"""What a story needs follows from what it does."""

import pytest

from memstory.language.capabilities import FEATURES, is_known, operations
from memstory.language.stories import parse_stories


@pytest.mark.parametrize(
    ("steps", "needs"),
    [
        ("{say: a}", {"chat"}),
        ("{say: a, expect: {tool_calls: []}}", {"chat", "chat.tools"}),
        ("{add: {text: a, key: k}}", {"add", "add.key"}),
        ("{add: {text: a, ttl: 1s, source: web, role: tool}}", {"add", "add.ttl", "add.source", "add.role"}),
        ("{add: {text: a, metadata: {b: 1}}}", {"add", "add.metadata"}),
        ("{add: {text: a, metadata: {b: [1]}}}", {"add", "add.metadata", "add.metadata.lists"}),
        ("{add: {text: a, metadata: {b: {}}}, expect: {refusal: allowed}}", {"add", "add.metadata"}),
        ("{update: {id: k, text: a, metadata: {b: 1}}}", {"update", "add.metadata"}),
        ("{update: {about: tea, text: a}}", {"update.about"}),
        ("{delete: {about: [tea, ale]}}", {"delete.about"}),
        ("{delete: {id: k, durable: true}}", {"delete", "delete.durable"}),
        ("{search: {query: q, as_of: '2026-01-01T00:00:00Z'}}", {"search", "search.as_of"}),
        ("{add: {text: a, twin: true}}, {wait: 1s, forbid: [tea]}", {"add", "search"}),
        ("{get: k}", {"get.key"}),
        ("{add: a, as: ''}", {"add", "scope.names"}),
        ("{get: {id: k}}", {"get.id"}),
        ("{search: {query: q, min_score: .3, where: {a: 1}, token_budget: 9}}",
         {"search", "search.min_score", "search.where", "search.budget"}),
        ("{search: {query: q, where: {a: {ge: 1, lt: 9}, b: {in: [x, y]}, c: {ne: z}, d: {exists: true}, e: {f: 1}}}}",
         {"search", "search.where", *(f"search.where.{name}" for name in ("order", "in", "ne", "exists"))}),
        ("{search: q, expect: {hits: {scores: {all: {ge: 0}}}}}", {"search", "search.scores"}),
        ("{search: q, expect: {hits: {first: {score: 1, explain: {a: 1}}}}}",
         {"search", "search.scores", "search.explain"}),
        ("{search: q, expect: {hits: {not: {includes: {score: 1}}}}}", {"search", "search.scores"}),
        ("{tools: }", {"tool.schema"}),
        ("{run: compress}", {"job.compress"}),
        ("{inspect: embedder}", {"inspect.embedder"}),
        ("{inspect: files}", set()),
        ("{end_session: }", {"session"}),
        ("{advance: 1s}", {"clock"}),
        ("{fault: {store: down}}", {"fault.store"}),
        ("{new_session: }, {settle: }", set()),
        ("{list: , as: ann}", {"list"}),
        ("{list: , as: ann}, {list: }", {"list", "scope.user"}),
        ("{parallel: {times: 2, steps: [{list: , as: 'u${i}'}]}}", {"list", "scope.user"}),
    ],
)  # fmt: skip
def test_needs_follow_from_steps(steps, needs):
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps: [{steps}]\n", "f.yaml")
    assert story.needs == needs


def test_a_story_for_some_targets_may_use_the_metadata_that_these_have():
    text = "story: A\ntitle: T\ntargets: [topics]\nsteps: [{add: {text: a, metadata: {b: [1]}}}]\n"
    (story,) = parse_stories(text, "f.yaml")
    assert story.needs == {"add"}


@pytest.mark.parametrize("name", ["expiry", "search", "job.compress", "option.toolset"])
def test_a_known_capability_may_be_required(name):
    assert is_known(name)


@pytest.mark.parametrize("name", ["", "job", "job.", "expirey", "jobs.compress"])
def test_an_unknown_capability_may_not_be_required(name):
    assert not is_known(name)


def test_no_word_is_both_an_operation_and_a_feature():
    assert not operations().keys() & FEATURES.keys()
