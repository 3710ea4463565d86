"""Plan, research, synthesise, with prior work told first: what was read before is not read again (O-19, O-22).

The text that a planner reads before it plans is that of the seed (PW-O-INJECT; O-17, OF-19, SEC-2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memstory.contract.models import ChatModel, ChatRequest, Message
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.text.lines import json_objects, one_line
from memstory_reference.text.words import extract_keywords, matching_keywords

HEADER = "Prior work on related topics:"
LEFT_OUT = "(more is known; it was left out for its length)"
PASSAGES_PER_QUERY = 3
MAX_QUERIES = 5

# What a line of our layout starts with; a stored text that starts so is set off, so it cannot forge a block.
_LAYOUT = re.compile(r"^(\[|•|Key facts:|Prior work on related topics:)", re.IGNORECASE)


def injection(observations: Sequence[Observation], most: int) -> str:
    """Return the block for these observations, in their order; the empty string for none (O-18).

    It has at most `most` characters: the lines that would be beyond are left out, and the last line says so.
    """
    if not observations:
        return ""
    lines = [HEADER, *(line for observation in observations for line in _block(observation))]
    if sum(map(len, lines)) + len(lines) - 1 <= most:
        return "\n".join(lines)
    kept, room = list[str](), most - len(LEFT_OUT)
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, LEFT_OUT])


def _block(observation: Observation) -> list[str]:
    title = one_line(observation.title).replace("[", "(").replace("]", ")")
    score = "n/a" if observation.final_score is None else f"{observation.final_score:.1f}"
    return [
        f"[{title} — score {score}]",
        _LAYOUT.sub(r"  \1", one_line(observation.narrative)),
        "Key facts:",
        *(f"• {one_line(fact)}" for fact in observation.facts),
    ]


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

    prior_work: Sequence[str]
    covered: frozenset[str]
    queries: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Researcher:
    """Plans and writes by a `chat` model, or without one by rules; `most` is how long the told prior work may be."""

    corpus: LocalCorpus
    chat: ChatModel | None
    most: int

    async def plan(
        self, task: str, related: Sequence[Observation], told: Sequence[Observation], context: str
    ) -> ResearchPlan:
        """Return a plan, given all `related` runs, those that are `told` by title, and the `context` in full."""
        titles = tuple(dict.fromkeys(observation.title for observation in told))
        planned = PlannerReply()
        if self.chat is not None:
            prompt = (
                f"{context}\n\nEarlier runs: {'; '.join(titles) or 'none'}\n\nTask: {task}\n\n"
                f"List up to {MAX_QUERIES} search queries for what is still missing, and the titles of those earlier "
                'runs that cover a part of the task. Answer as JSON: {"queries": [...], "prior_work": [...]}'
            )
            planned = read_plan(await self._ask(prompt, "plan"))
        # A planner may leave out what does not fit, and invent nothing.
        used = [title for title in titles if planned.covers(title)]
        tasks = {observation.normal_task for observation in told if observation.title in used}
        return ResearchPlan(
            prior_work=tuple(used),
            covered=frozenset(source for one in related if one.normal_task in tasks for source in one.sources),
            queries=planned.queries or (task,),
        )

    def fetch(self, plan: ResearchPlan) -> tuple[list[Passage], list[str]]:
        """Return the passages that the plan finds, and the ids of those that earlier runs have read."""
        found = dict.fromkeys(
            passage for query in plan.queries for passage in self.corpus.find(query, PASSAGES_PER_QUERY)
        )
        fetched = [self.corpus.fetch(passage) for passage in found if passage not in plan.covered]
        return fetched, [passage for passage in found if passage in plan.covered]

    async def write(self, task: str, prior: Sequence[Observation], passages: Sequence[Passage]) -> str:
        """Return the answer, from prior work and what was read."""
        if self.chat is None:
            # What was read and what was known, each as a bullet.
            known = [f"- {fact}" for observation in prior for fact in observation.facts]
            read = [f"- {one_line(passage.text)}" for passage in passages]
            opening = f"{one_line(task).rstrip('.')}: {len(passages)} new sources, {len(prior)} earlier runs."
            return "\n".join([opening, *read, *known])
        sources = "\n".join(f"[{passage.id}] {one_line(passage.text)}" for passage in passages)
        return await self._ask(
            f"{injection(prior, self.most)}\n\nSources:\n{sources}\n\nTask: {task}\n\n"
            "Write the answer from prior work and sources only.",
            "synthesise",
        )

    async def _ask(self, prompt: str, purpose: str) -> str:
        if self.chat is None:
            return ""
        request = ChatRequest([Message(role="user", content=prompt)], purpose=purpose)
        return (await self.chat.chat(request)).content


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
