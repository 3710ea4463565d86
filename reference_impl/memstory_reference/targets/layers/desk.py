"""The jobs and looks that the layers offer beside the common operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

from memstory.errors import StoryError
from memstory.target import Json
from memstory_reference.systems.layers.audit.crisis_events import CrisisLogRecord
from memstory_reference.systems.layers.feedback.session_labels import SessionFeedbackRecord
from memstory_reference.systems.layers.records.record import Layer, Standing
from memstory_reference.systems.layers.service import LayersService, Who
from memstory_reference.targets.layers.values import buffer_view, hit_of

Args = Mapping[str, Json]


async def run_job(service: LayersService, job: str, args: Args, who: Who) -> Json:
    """Run a job for an owner and return what it reports; a missing argument is the story's mistake."""
    try:
        return await _JOBS[job](service, args, who)
    except (KeyError, TypeError) as error:
        raise StoryError(f"run: the arguments of {job} are wrong: {error}") from error


async def look(service: LayersService, what: str, args: Args, who: Who) -> Json:
    """Look inside for an owner."""
    try:
        return await _LOOKS[what](service, args, who)
    except KeyError as error:
        raise StoryError(f"inspect: {what} needs the argument {error}") from error


async def _archive(service: LayersService, args: Args, who: Who) -> Json:
    return await service.records.archive(who.owner, args["id"])


async def _restore(service: LayersService, args: Args, who: Who) -> Json:
    return await service.records.restore(who.owner, args["id"])


async def _feedback(service: LayersService, args: Args, who: Who) -> Json:
    return {"id": await service.give_feedback(who, **args)}


async def _purge(service: LayersService, _args: Args, _who: Who) -> Json:
    return {"purged": await service.purge_crisis_log()}


async def _recall(service: LayersService, args: Args, who: Who) -> Json:
    service.set_recall(who.owner, on=args["on"])
    return None


async def _reindex(service: LayersService, _args: Args, who: Who) -> Json:
    return {"embedded": await service.records.embed_missing(who.owner)}


async def _voice(service: LayersService, args: Args, who: Who) -> Json:
    turns = [(turn["user"], turn.get("assistant", "")) for turn in args["turns"]]
    return {"ended": await service.finalise_voice(turns, who) is not None}


async def _status(service: LayersService, _args: Args, who: Who) -> Json:
    return await service.status(who.owner)


async def _buffer(service: LayersService, _args: Args, who: Who) -> Json:
    return buffer_view(await service.buffer(who))


async def _diagnostics(service: LayersService, _args: Args, who: Who) -> Json:
    return service.diagnostics(who)


async def _working_memory(service: LayersService, args: Args, who: Who) -> Json:
    return (await service.load_memory_for_turn(args["query"], who)).state()


async def _audit(service: LayersService, _args: Args, who: Who) -> Json:
    return [_plain(record) for record in await service.crisis_log(who.owner)]


async def _given(service: LayersService, _args: Args, who: Who) -> Json:
    return [_plain(record) for record in await service.feedback(who.owner)]


async def _export(service: LayersService, _args: Args, who: Who) -> Json:
    return await service.records.export(who.owner)


async def _shelved(service: LayersService, _args: Args, who: Who) -> Json:
    shelved = (Standing.ARCHIVED, Standing.SUPERSEDED)
    hits = [hit_of(record) for record in await service.records.listed(who.owner, tuple(Layer), shelved)]
    return [{"id": hit.id, "text": hit.text, "kind": hit.kind, **hit.metadata} for hit in hits]


def _plain(record: CrisisLogRecord | SessionFeedbackRecord) -> dict[str, Json]:
    # Members of an enumeration are told as the texts that they stand for.
    plain = {name: str(value) if isinstance(value, str) else value for name, value in asdict(record).items()}
    return {**plain, "at": record.at.isoformat()}


_Act = Callable[[LayersService, Args, Who], Awaitable[Json]]
_JOBS: Mapping[str, _Act] = {
    "archive": _archive,
    "feedback": _feedback,
    "purge": _purge,
    "recall": _recall,
    "reindex": _reindex,
    "restore": _restore,
    "voice": _voice,
}
_LOOKS: Mapping[str, _Act] = {
    "audit": _audit,
    "buffer": _buffer,
    "diagnostics": _diagnostics,
    "export": _export,
    "feedback": _given,
    "shelved": _shelved,
    "status": _status,
    "working_memory": _working_memory,
}
JOBS = tuple(_JOBS)
LOOKS = tuple(_LOOKS)
