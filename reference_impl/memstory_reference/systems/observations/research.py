"""Plan, research, synthesise: a small loop that reads its memory first and fetches nothing twice (O-19, O-22)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memstory_reference.ports import ChatModel, Message
from memstory_reference.systems.observations.injection import injection
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.service import ObservationService, Stored
from memstory_reference.text.keywords import extract_keywords, matched
from memstory_reference.text.lines import one_line

PASSAGES_PER_QUERY = 3
MAX_QUERIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A document that research may fetch."""

    id: str
    text: str


class Corpus(Protocol):
    """Where research looks."""

    def find(self, query: str, limit: int) -> Sequence[str]:
        """Return the ids of the passages about `query`, best first."""
        ...

    def fetch(self, passage_id: str) -> Passage:
        """Read one passage: the dear part."""
        ...


class LocalCorpus:
    """Passages held in memory, found by the words they share with a query; `fetched` lists every read."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = {passage.id: passage for passage in passages}
        self.fetched: list[str] = []

    def find(self, query: str, limit: int) -> Sequence[str]:
        keywords = extract_keywords(query)
        counts = {one.id: len(matched(keywords, one.text)) for one in self._passages.values()}
        best = sorted((one for one in counts if counts[one]), key=lambda one: (-counts[one], one))
        return best[:limit]

    def fetch(self, passage_id: str) -> Passage:
        self.fetched.append(passage_id)
        return self._passages[passage_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run sets out to do; `prior_work` names what earlier runs found, `covered` the passages they read."""

    task: str
    prior_work: Sequence[str]
    covered: frozenset[str]
    queries: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRun:
    """A finished run: what it fetched, what it left out as already known, and what it remembered."""

    plan: Plan
    context: str
    fetched: Sequence[str]
    spared: Sequence[str]
    output: str
    stored: Stored


class ResearchLoop:
    """Runs one task at a time; without a `chat` model it plans and writes by rules."""

    def __init__(self, service: ObservationService, corpus: Corpus, chat: ChatModel | None) -> None:
        self._service = service
        self._corpus = corpus
        self._chat = chat

    async def run(
        self,
        task: str,
        owner: str,
        *,
        run_id: str | None = None,
        task_type: str = "research",
        final_score: float | None = None,
    ) -> ResearchRun:
        """Carry out `task` and store what it found; `final_score` comes from a reviewer, never from the text."""
        prior = [entry.observation for entry in await self._service.search(task, owner)]
        context = injection(prior)
        plan = await self._plan(task, prior, context)
        fetched, spared = self._research(plan)
        output = await self._write(task, prior, context, fetched)
        stored = await self._service.compress_and_store(
            task=task,
            output=output,
            owner=owner,
            task_type=task_type,
            final_score=final_score,
            run_id=run_id,
            sources=[passage.id for passage in fetched],
        )
        return ResearchRun(
            plan=plan,
            context=context,
            fetched=[passage.id for passage in fetched],
            spared=spared,
            output=output,
            stored=stored,
        )

    async def _plan(self, task: str, prior: Sequence[Observation], context: str) -> Plan:
        queries: Sequence[str] = ()
        if self._chat is not None:
            prompt = (
                f"{context}\n\nTask: {task}\n\nList up to {MAX_QUERIES} search queries for what is still missing. "
                'Leave out what prior work covers. Answer as JSON: {"queries": [...]}'
            )
            reply = await self._chat.chat([Message(role="user", content=prompt)], purpose="plan")
            queries = queries_in(reply.content)
        return Plan(
            task=task,
            prior_work=tuple(observation.title for observation in prior),
            covered=frozenset(source for observation in prior for source in observation.sources),
            queries=tuple(queries) or (task,),
        )

    def _research(self, plan: Plan) -> tuple[list[Passage], list[str]]:
        found = dict.fromkeys(
            passage for query in plan.queries for passage in self._corpus.find(query, PASSAGES_PER_QUERY)
        )
        fetched = [self._corpus.fetch(passage) for passage in found if passage not in plan.covered]
        return fetched, [passage for passage in found if passage in plan.covered]

    async def _write(self, task: str, prior: Sequence[Observation], context: str, passages: Sequence[Passage]) -> str:
        if self._chat is None:
            return output_by_rules(task, prior, passages)
        sources = "\n".join(f"[{passage.id}] {one_line(passage.text)}" for passage in passages)
        prompt = (
            f"{context}\n\nSources:\n{sources}\n\nTask: {task}\n\nWrite the answer from prior work and sources only."
        )
        return (await self._chat.chat([Message(role="user", content=prompt)], purpose="synthesise")).content


def queries_in(reply: str) -> tuple[str, ...]:
    """Return the queries in a planner's JSON, fenced or amid prose; none if there is no such JSON.

    >>> queries_in('Sure: {"queries": ["token budgets", ""]}')
    ('token budgets',)
    """
    block = re.search(r"\{.*\}", reply, re.DOTALL)
    try:
        listed = json.loads(block.group()).get("queries", []) if block else []
    except (json.JSONDecodeError, AttributeError):
        return ()
    return tuple(one_line(query) for query in listed if isinstance(query, str) and query.strip())[:MAX_QUERIES]


def output_by_rules(task: str, prior: Sequence[Observation], passages: Sequence[Passage]) -> str:
    """Return an output without a model: what was read and what was known, each as a bullet."""
    known = [f"- {fact}" for observation in prior for fact in observation.facts]
    read = [f"- {one_line(passage.text)}" for passage in passages]
    opening = f"{one_line(task).rstrip('.')}: {len(passages)} new sources, {len(prior)} earlier runs."
    return "\n".join([opening, *read, *known])
