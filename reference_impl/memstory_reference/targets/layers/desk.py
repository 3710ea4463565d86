"""The jobs of the layers, and what can be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from memstory.contract.target import Scope, Tree
from memstory_reference.systems.layers.audit.crisis_log import CrisisLogRecord
from memstory_reference.systems.layers.feedback.session_feedback import SessionFeedbackRecord
from memstory_reference.systems.layers.identity import resolve_owner_id
from memstory_reference.systems.layers.records.record import Layer, Standing
from memstory_reference.systems.layers.service import LayersService, OwnerSession
from memstory_reference.targets.layers.options import LayersOptions
from memstory_reference.targets.layers.values import buffer_view, hit_of
from memstory_reference.targets.system_target import SystemTarget

EXTRACTOR = "extractor"
"""The part of the model that is asked after the reply; a story can make it fail alone, by a job of this name."""


class LayersJobs(SystemTarget[LayersService]):
    """What the layers offer beside the common operations."""

    _options: LayersOptions

    async def _who(self, scope: Scope) -> OwnerSession:
        name = scope.user.removeprefix(self._env.owner).removeprefix(".")
        user = None if name in self._options.anonymous else scope.user
        return await self._system.who(user, scope.session)

    async def _owner(self, scope: Scope) -> str:
        return (await self._who(scope)).owner

    async def _job_archive(self, scope: Scope, *, id: str) -> Tree:  # noqa: A002  (the story's word)
        return await self._system.records.archive(await self._owner(scope), id)

    async def _job_restore(self, scope: Scope, *, id: str) -> Tree:  # noqa: A002  (the story's word)
        return await self._system.records.restore(await self._owner(scope), id)

    async def _job_feedback(self, scope: Scope, *, label: str, source: str = "text", comment: str = "") -> Tree:
        return {"id": await self._system.give_feedback(await self._who(scope), label, source, comment)}

    async def _job_purge(self, _: Scope) -> Tree:
        return {"purged": await self._system.purge_crisis_log()}

    async def _job_recall(self, scope: Scope, *, on: bool) -> Tree:
        await self._system.set_recall(await self._owner(scope), on=on)

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"embedded": await self._system.records.embed_missing(await self._owner(scope))}

    async def _job_voice(self, scope: Scope, *, turns: Sequence[Mapping[str, str]]) -> Tree:
        spoken = [(turn["user"], turn.get("assistant", "")) for turn in turns]
        return {"ended": await self._system.finalise_voice(spoken, await self._who(scope)) is not None}

    async def _job_extractor(self, _: Scope, *, mode: str) -> Tree:
        # Not a fault of a part that every memory has: the model's calls after the reply alone.
        self._ports.set_fault(EXTRACTOR, mode)

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._system.status(await self._owner(scope))

    async def _look_identity(self, scope: Scope, **claims: Tree) -> Tree:
        if claims:
            return {"owner": resolve_owner_id(claims, b"a key of the story")}
        who = await self._who(scope)
        return {"owner": who.owner, "session": who.session, "user_id": scope.user}

    async def _look_buffer(self, scope: Scope) -> Tree:
        return buffer_view(await self._system.buffer(await self._who(scope)))

    async def _look_diagnostics(self, scope: Scope) -> Tree:
        return self._system.diagnostics(await self._who(scope))

    async def _look_working_memory(self, scope: Scope, *, query: str) -> Tree:
        return (await self._system.load_memory_for_turn(query, await self._who(scope))).state()

    async def _look_audit(self, scope: Scope) -> Tree:
        return [_plain(record) for record in await self._system.crisis_log(await self._owner(scope))]

    async def _look_feedback(self, scope: Scope) -> Tree:
        return [_plain(record) for record in await self._system.feedback(await self._owner(scope))]

    async def _look_export(self, scope: Scope) -> Tree:
        return await self._system.records.export(await self._owner(scope))

    async def _look_shelved(self, scope: Scope) -> Tree:
        shelved = (Standing.ARCHIVED, Standing.SUPERSEDED)
        found = await self._system.records.listed(await self._owner(scope), tuple(Layer), shelved)
        return [{"id": hit.id, "text": hit.text, "kind": hit.kind, **hit.metadata} for hit in map(hit_of, found)]


def _plain(record: CrisisLogRecord | SessionFeedbackRecord) -> dict[str, Tree]:
    # Members of an enumeration become texts.
    plain = {name: str(value) if isinstance(value, str) else value for name, value in asdict(record).items()}
    return {**plain, "at": record.at.isoformat()}
