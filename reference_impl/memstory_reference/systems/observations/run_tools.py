"""The tools of the observations for agents: what is known about a task, keep a run, rate it, forget it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from memstory.contract.values import Tree
from memstory_reference.systems.observations.observation import TASK_TYPES
from memstory_reference.systems.observations.ordering import RankedObservation
from memstory_reference.systems.observations.service import ObservationService
from memstory_reference.text.lines import shorten
from memstory_reference.tooling import AddTool, ChangeTool, LocalTools, ReadTool, parameters

_FEW = {"type": "integer", "description": "How many runs at most", "default": 3}
_TYPE = {"type": "string", "description": f"One of {', '.join(TASK_TYPES)}", "default": "research"}
SEARCH = ReadTool(
    name="search_runs",
    description="Before planning a task: what earlier runs found about it, the better runs first.",
    parameters=parameters("task", task="The task that is about to be planned", top_k=_FEW),
)
STORE = AddTool(
    name="store_run",
    description="After a run: keep what it found, so that later runs need not find it again.",
    parameters=parameters(
        "task",
        "output",
        task="The task as it was given",
        output="What the run wrote",
        task_type=_TYPE,
        final_score={"type": "number", "description": "A reviewer's score from 0 to 10, if there was one"},
        run_id="The id of the run; storing it again changes nothing",
    ),
)
RATE = ChangeTool(
    name="rate_run",
    description="Rate a run by hand: better ones are returned first.",
    parameters=parameters(
        "run_id", "rating", run_id="The id of the run", rating={"type": "number", "description": "From -2 to 2"}
    ),
)
FORGET = ChangeTool(
    name="forget_run",
    description="Forget a run for good.",
    parameters=parameters("run_id", run_id="The id of the run"),
)
SPECS = (SEARCH, STORE, RATE, FORGET)


class RunTools(LocalTools):
    """The tools of one owner, which is never an argument."""

    def __init__(self, service: ObservationService, owner: str) -> None:
        self._service = service
        self._owner = owner
        super().__init__((SEARCH, self._search), (STORE, self._store), (RATE, self._rate), (FORGET, self._forget))

    async def _search(self, arguments: Mapping[str, Tree]) -> Tree:
        found = await self._service.search(arguments["task"], self._owner, arguments.get("top_k"))
        room = self._service.config.max_context_characters // max(1, len(found))
        return [_result_row(entry, room) for entry in found]

    async def _store(self, arguments: Mapping[str, Tree]) -> Tree:
        given = {name: value for name, value in arguments.items() if value not in (None, "")}
        stored = await self._service.compress_and_store(owner=self._owner, **{"task": "", "output": "", **given})
        told = {"id": stored.observation.id, "outcome": stored.outcome, "title": stored.observation.title}
        return {**told, **({"warnings": list(stored.warnings)} if stored.warnings else {})}

    async def _rate(self, arguments: Mapping[str, Tree]) -> Tree:
        return {"success": await self._service.rate(arguments["run_id"], arguments["rating"], self._owner)}

    async def _forget(self, arguments: Mapping[str, Tree]) -> Tree:
        return {"success": bool(await self._service.delete([arguments["run_id"]], self._owner))}


def _result_row(entry: RankedObservation, room: int) -> dict[str, Tree]:
    one, facts = entry.observation, list[str]()
    narrative = shorten(one.narrative, max(200, room // 2))
    room -= len(narrative) + len(one.title)
    for fact in one.facts:
        room -= len(fact)
        facts += [fact] if room >= 0 else []
    about = {"run_id": one.id, "title": one.title, "score": one.final_score, "rating": one.rating}
    return {**about, "narrative": narrative, "facts": facts, **asdict(entry.rank)}
