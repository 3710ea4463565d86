"""Faults that a story injects: each must be seen to land, because a fault that is never hit proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memstory.contract.errors import NotSupported, TargetError
from memstory.contract.target import Request, Target, Tree
from memstory.running.stage import Stage

_HEALED = "ok"


@dataclass(slots=True)
class Injected:
    """The parts that are failing now, each with how often that had been met when it began."""

    _since: dict[str, int] = field(default_factory=dict)

    async def begin(self, stage: Stage, part: str, mode: str) -> None:
        """Note that `part` behaves as `mode` from now on; TargetError if its last fault met nothing."""
        landed = await _landed(stage)
        if part in self._since:
            self._check(part, landed)
        self._since.pop(part, None)
        if mode != _HEALED:
            self._since[part] = landed.get(part, 0)

    async def end(self, stage: Stage) -> None:
        """Note that all parts are whole again; TargetError if a fault met nothing."""
        if self._since:
            landed = await _landed(stage)
            for part in self._since:
                self._check(part, landed)
            self._since.clear()

    def _check(self, part: str, landed: Mapping[str, Tree]) -> None:
        if landed.get(part, 0) <= self._since[part]:
            why = f"nothing used the {part} while it failed, so that this shows nothing"
            raise TargetError(f"the fault of the {part} did not land: {why}")


async def _landed(stage: Stage) -> Mapping[str, int]:
    try:
        return await stage.target.perform(Request.of(Target.faults_landed))
    except NotSupported as error:
        raise TargetError(str(error)) from error
