"""Plan, research, synthesise: a small loop that reads its memory first and fetches nothing twice (O-19, O-22)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memstory.contract.models import ChatModel, ChatRequest, Message
from memstory.contract.values import Tree
from memstory_reference.systems.observations.injection import injection
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ordering import best_of_each_task
from memstory_reference.systems.observations.service import ObservationService, StoredObservation
from memstory_reference.text.lines import json_objects, one_line
from memstory_reference.text.words import extract_keywords, matching_keywords

PASSAGES_PER_QUERY = 3
MAX_QUERIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A document that research may fetch."""

    id: str
    text: str


class LocalCorpus:
    """Passages held in memory, found by the words they share with a query."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = {passage.id: passage for passage in passages}

    def find(self, query: str, limit: int) -> Sequence[str]:
        """Return the ids of the passages about `query`, best first."""
        keywords = extract_keywords(query)
        counts = {one.id: len(matching_keywords(keywords, one.text)) for one in self._passages.values()}
        best = sorted((one for one in counts if counts[one]), key=lambda one: (-counts[one], one))
        return best[:limit]

    def fetch(self, passage_id: str) -> Passage:
        """Read one passage: the dear part."""
        return self._passages[passage_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchPlan:
    """What a run sets out to do; `prior_work` names what earlier runs found, `covered` the passages they read."""

    task: str
    prior_work: Sequence[str]
    covered: frozenset[str]
    queries: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRun:
    """A finished run: what it fetched, what it left out as already known, and what it remembered, if anything."""

    plan: ResearchPlan
    context: str
    fetched: Sequence[str]
    spared: Sequence[str]
    output: str
    stored: StoredObservation | None


class ResearchLoop:
    """Runs one task at a time; without a `chat` model it plans and writes by rules."""

    def __init__(self, service: ObservationService, corpus: LocalCorpus, chat: ChatModel | None) -> None:
        self._service = service
        self._corpus = corpus
        self._chat = chat

    async def run(self, task: str, owner: str, **given: Tree) -> ResearchRun:
        """Carry out `task` and store what it found, with what is `given` to `compress_and_store`.

        A `final_score` comes from a reviewer, never from the text. A run that read nothing and knew nothing is not
        stored: it would be prior work that teaches nothing.
        """
        related = [entry.observation for entry in await self._service.find_related(task, owner)]
        told = best_of_each_task(related)
        context = injection(told[: self._service.config.top_k], self._service.config.max_context_characters)
        plan = await self._plan(task, related, told, context)
        fetched, spared = self._research(plan)
        prior = [observation for observation in told if observation.title in plan.prior_work]
        output = await self._write(task, prior, fetched)
        stored = None
        if fetched or prior:
            stored = await self._service.compress_and_store(
                task=task,
                output=output,
                owner=owner,
                # What it spared is what it builds on: the best run of a task speaks for those before it.
                sources=[*(passage.id for passage in fetched), *spared],
                **given,
            )
        return ResearchRun(
            plan=plan,
            context=context,
            fetched=[passage.id for passage in fetched],
            spared=spared,
            output=output,
            stored=stored,
        )

    async def _plan(
        self, task: str, related: Sequence[Observation], told: Sequence[Observation], context: str
    ) -> ResearchPlan:
        titles = tuple(dict.fromkeys(observation.title for observation in told))
        planned = PlannerReply()
        if self._chat is not None:
            prompt = (
                f"{context}\n\nEarlier runs: {'; '.join(titles) or 'none'}\n\nTask: {task}\n\n"
                f"List up to {MAX_QUERIES} search queries for what is still missing, and the titles of those earlier "
                'runs that cover a part of the task. Answer as JSON: {"queries": [...], "prior_work": [...]}'
            )
            reply = await self._chat.chat(ChatRequest([Message(role="user", content=prompt)], purpose="plan"))
            planned = read_plan(reply.content)
        # A planner may leave out what does not fit, and invent nothing.
        used = [title for title in titles if planned.covers(title)]
        tasks = {observation.normal_task for observation in told if observation.title in used}
        return ResearchPlan(
            task=task,
            prior_work=tuple(used),
            covered=frozenset(source for one in related if one.normal_task in tasks for source in one.sources),
            queries=planned.queries or (task,),
        )

    def _research(self, plan: ResearchPlan) -> tuple[list[Passage], list[str]]:
        found = dict.fromkeys(
            passage for query in plan.queries for passage in self._corpus.find(query, PASSAGES_PER_QUERY)
        )
        fetched = [self._corpus.fetch(passage) for passage in found if passage not in plan.covered]
        return fetched, [passage for passage in found if passage in plan.covered]

    async def _write(self, task: str, prior: Sequence[Observation], passages: Sequence[Passage]) -> str:
        if self._chat is None:
            return output_by_rules(task, prior, passages)
        context = injection(prior, self._service.config.max_context_characters)
        sources = "\n".join(f"[{passage.id}] {one_line(passage.text)}" for passage in passages)
        prompt = (
            f"{context}\n\nSources:\n{sources}\n\nTask: {task}\n\nWrite the answer from prior work and sources only."
        )
        request = ChatRequest([Message(role="user", content=prompt)], purpose="synthesise")
        return (await self._chat.chat(request)).content


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerReply:
    """What a planner answered; `prior_work` is None where it named none or was not asked."""

    queries: tuple[str, ...] = ()
    prior_work: frozenset[str] | None = None

    def covers(self, title: str) -> bool:
        """Say whether the planner takes a run for prior work; one that says nothing takes all."""
        return self.prior_work is None or title.casefold() in self.prior_work


def read_plan(reply: str) -> PlannerReply:
    """Return what a planner's JSON says, fenced or amid prose; nothing if there is no such JSON.

    >>> read_plan('Sure: {"queries": ["token budgets", ""]}').queries
    ('token budgets',)
    """
    found = next(json_objects(reply), {})
    queries, prior = found.get("queries"), found.get("prior_work")
    return PlannerReply(
        queries=_texts(queries)[:MAX_QUERIES],
        prior_work=frozenset(title.casefold() for title in _texts(prior)) if isinstance(prior, list) else None,
    )


def _texts(listed: object) -> tuple[str, ...]:
    texts = listed if isinstance(listed, list) else []
    return tuple(one_line(text) for text in texts if isinstance(text, str) and text.strip())


def output_by_rules(task: str, prior: Sequence[Observation], passages: Sequence[Passage]) -> str:
    """Return an output without a model: what was read and what was known, each as a bullet."""
    known = [f"- {fact}" for observation in prior for fact in observation.facts]
    read = [f"- {one_line(passage.text)}" for passage in passages]
    opening = f"{one_line(task).rstrip('.')}: {len(passages)} new sources, {len(prior)} earlier runs."
    return "\n".join([opening, *read, *known])
