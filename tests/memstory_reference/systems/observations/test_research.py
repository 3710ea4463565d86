"""Research that reads its memory first: nothing is fetched twice, and a run that found nothing teaches nothing."""

import json
from dataclasses import dataclass, field

import pytest

from memstory.contract.models import Reply
from memstory.contract.target import Ref, Scope
from memstory_reference.systems.observations import research
from memstory_reference.systems.observations.research import LocalCorpus, Passage

ANN = Scope(user="ann")

TOKENS = "How to control the token budget of agents"
PASSAGES = [
    Passage(id="caps", text="A hard token budget cap stops runaway agents."),
    Passage(id="alerts", text="Alerts at eighty percent of the token budget give time to react."),
    Passage(id="bees", text="Bees navigate by the sun and by landmarks."),
]


@dataclass
class Planner:
    """A model that plans on request, and writes and compresses without surprise."""

    plan: dict = field(default_factory=dict)
    name = "planner"

    async def chat(self, request):
        answers = {"plan": json.dumps(self.plan), "synthesise": "Token budgets of agents have a hard cap."}
        title, narrative = f"Notes {request.messages[0].content[:1]}", "How the token budget of agents is kept."
        told = json.dumps({"title": title, "narrative": narrative, "facts": ["a hard cap"]})
        return Reply(content=answers.get(request.purpose, told))


async def run(memory, task, passages=PASSAGES, chat=None, **options):
    memory.chat = chat
    return await memory.research(task, "ann", LocalCorpus(passages), **options)


async def test_a_better_repeat_has_no_source_fetched_again(on_words):
    runs = [await run(on_words, TOKENS, run_id=f"r{n}", final_score=score) for n, score in enumerate((7.0, 9.0, 8.0))]
    assert [sorted(one.fetched) for one in runs] == [["alerts", "caps"], [], []]
    assert [sorted(one.spared) for one in runs] == [[], ["alerts", "caps"], ["alerts", "caps"]]


async def test_sources_of_more_runs_than_a_planner_is_told_are_spared(on_words, monkeypatch):
    monkeypatch.setattr(research, "PASSAGES_PER_QUERY", 8)
    things = ("caps", "alerts", "pools", "audits", "quotas", "logs", "limits")
    passages = [Passage(id=thing, text=f"Source on token budget {thing} for agents.") for thing in things]
    for thing, passage in zip(things, passages, strict=True):
        await run(on_words, f"token budget {thing} for agents", [passage], run_id=thing, final_score=8.0)
    overview = await run(on_words, "overview of the token budget for agents", passages)
    assert (overview.fetched, sorted(overview.spared)) == ([], sorted(things))
    assert overview.context.count("Key facts:") == 3
    assert all(f"token budget {thing}" in overview.output for thing in things)


async def test_a_run_that_found_nothing_is_no_prior_work(on_words):
    empty = await run(on_words, "Zeppelin maintenance on Mars", [])
    assert empty.stored is None
    assert await on_words.get_context("Zeppelin maintenance", "ann") == ""
    later = await run(on_words, "Zeppelin maintenance on Mars", [Passage(id="z", text="Zeppelin maintenance is dear.")])
    assert (later.plan.prior_work, later.fetched) == ((), ["z"])


async def test_a_planner_says_which_prior_work_covers_its_task(on_words):
    await run(on_words, TOKENS, run_id="first", final_score=8.0)
    (title,) = (one.title for one in await on_words.recent("ann"))
    cases = {"unsaid": ({}, (title,)), "named": ({"prior_work": [title.upper(), "made up"]}, (title,))}
    for plan, expected in cases.values():
        again = await run(on_words, TOKENS, chat=Planner({"queries": ["token budget"], **plan}), run_id="again")
        assert (again.plan.prior_work, again.fetched) == (expected, [])
        await on_words.delete(Ref(id="again"), ANN)
    fresh = await run(on_words, TOKENS, chat=Planner({"queries": ["token budget"], "prior_work": []}), run_id="fresh")
    assert (fresh.plan.prior_work, sorted(fresh.fetched)) == ((), ["alerts", "caps"])


@pytest.mark.parametrize("reply", ['{"queries": 5}', '{"prior_work": "x"}', "[]", "{", "", '{"queries": [1, null]}'])
async def test_a_plan_that_cannot_be_read_is_the_task_itself(on_words, reply):
    class Broken(Planner):
        async def chat(self, request):
            return Reply(content=reply) if request.purpose == "plan" else await super().chat(request)

    assert (await run(on_words, TOKENS, chat=Broken())).plan.queries == (TOKENS,)
