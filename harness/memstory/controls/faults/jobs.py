"""Faults of jobs that tidy a memory: they lose what is there, or what is written while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from memstory.contract.target import Answer, Json, Request, Scope
from memstory.controls.mutants import Mutant

_BUSY_SECONDS: Final = 0.02


class LosingAtJobs(Mutant):
    """Drops, with each job, the memory that was written last."""

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        result = await super().run(job, args, scope)
        self._memories = self._memories[:-1]
        self._save()
        return result


class OverwritingAtJobs(Mutant):
    """Writes back, at the end of a job, what was there at its beginning."""

    async def perform(self, request: Request[Answer]) -> Answer:
        if request.op != "run":
            return await super().perform(request)
        before = [*self._memories]
        await asyncio.sleep(_BUSY_SECONDS)
        answer = await super().perform(request)
        # Of several at once, the one that read least is the last to write.
        self._memories = min(before, self._memories, key=len)
        self._save()
        return answer


class ForgettingAfterJobs(Mutant):
    """Writes nothing into its file any more once a job has run."""

    _is_tidied = False

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        self._is_tidied = True
        return await super().run(job, args, scope)

    def _save(self) -> None:
        if not self._is_tidied:
            super()._save()
