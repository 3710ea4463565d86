"""The oracle: a perfect small memory that every story must allow.

It keeps everything in one JSON file of its workspace, so that it survives restart and crash, and ranks by shared words,
or by the vectors of a story that gives some; in a retrieval task it knows the right answers. A memory whose metadata
has `expires_at` is gone when that time comes. What a user said comes before what others said, and what repeats a few
words comes last.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.codec import decode, encode
from memstory.contract.errors import NotSupported, Refused, StoryError
from memstory.contract.target import (
    Answer,
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Request,
    Scope,
    Target,
    TargetFactory,
    operators_of,
)
from memstory.controls import matching
from memstory.tasks.retrieval import Collection


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleMemory:
    """One remembered thing and whose it is."""

    user: str
    session: str | None
    hit: Hit
    begun: str | None = None
    until: str | None = None
    source: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a memory said before it was changed, and when it ceased to say so."""

    memory: OracleMemory
    ended: str


_WORDS: Final = """
add add.key add.metadata add.metadata.lists add.ttl add.source add.role search.as_of update.about delete.about
context inspect.log inspect.index job.reindex job.optimize job.compress job.cleanup job.sweep job.export
job.snapshot job.restore job.share job.unshare add.by_model embedder.fixed fault.model fault.embedder fault.nan
rank.newest rank.unstuffed delete.durable integrity add.verbatim add.exact get.id get.key search
search.scores search.min_score list update search.where search.where.order search.where.ne search.where.in
search.where.exists search.where.any restart restart.embedder upgrade crash other_process clock persistent
scope.user scope.session scope.session_all expiry.at delete delete.reports_missing delete.scope delete.erases
identifiers.spellings identifiers.scripts
"""
_TIDYING: Final = frozenset({"reindex", "optimize", "compress", "cleanup", "sweep"})
"""Jobs that change nothing that anybody sees."""
_PAUSE_SECONDS: Final = 0.001
"""Between two looks whether another process has ended its turn."""
VERIFIED = "verified"
EXPIRES_AT = "expires_at"
"""The metadata field with the moment, ISO 8601, from which on a memory is gone."""


class Oracle(Target):
    """A perfect memory: it loses nothing, crosses nothing and forgets on request."""

    def __init__(self) -> None:
        self._memories: list[OracleMemory] = []
        self._past: list[Past] = []
        self._forgotten: set[str] = set()
        self._exported: set[str] = set()
        self._log: list[Mapping[str, str | None]] = []
        self._shared: set[tuple[str, str]] = set()
        self._reader, self._misreads, self._count = "ok", 0, 0
        self._is_embedding, self._unembedded = True, 0
        self._path: Path | None = None
        self._clock: Clock | None = None
        self._seed, self._embedder = 0, "words"
        self._gold: dict[str, set[str]] = {}
        self._vectors: Mapping[str, Sequence[float]] = {}

    def take_gold(self, collection: Collection) -> None:
        """Learn which documents answer which question, so that retrieval has a ceiling to be measured against."""
        texts = {document.id: document.text for document in collection.documents}
        for question in collection.questions:
            self._gold.setdefault(question.text, set()).update(texts[gold] for gold in question.relevant)

    async def open(self, env: Environment, clock: Clock) -> None:
        self._vectors = env.vectors
        self._clock, self._seed, self._embedder = clock, env.seed, "other words" if env.other_embedder else "words"
        self._path = Path(env.workspace) / "oracle.json"
        self._turns = Turns(self._path)
        self._catch_up()

    async def close(self) -> None:
        self._memories, self._past, self._forgotten = [], [], set()

    async def perform(self, request: Request[Answer]) -> Answer:
        async with self._turns.turn():
            self._catch_up()
            return await super().perform(request)

    async def about(self) -> Mapping[str, str]:
        return {"memory": "oracle (a control, not a backend)", "embedder": self._embedder}

    async def fault(self, part: str, mode: str) -> None:
        if part == "model":
            self._reader = mode
        elif part == "embedder":
            self._is_embedding = mode not in ("down", "nan")
        else:
            raise NotSupported(f"fault.{part}")

    async def fault_counts(self) -> Mapping[str, int]:
        return {"model": self._misreads, "embedder": self._unembedded}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        items = self._read(items)
        self._embed()
        receipts = []
        for item in items:
            if self._was_forgotten(item, scope):
                receipts.append(_receipt(Hit(id=None, text=item.text), "discarded"))
                continue
            old = self._find(Ref(key=item.key, kind=item.kind), scope) if item.key is not None else None
            metadata = self._trusted_metadata(item)
            hit = replace(old.hit if old else self._new(item), text=item.text, metadata=metadata)
            self._put(self._memory_of(item, scope, hit), old)
            receipts.append(_receipt(hit, "updated" if old else "stored"))
        self._save()
        return Receipt(items=tuple(receipts))

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return found.hit if (found := self._find(ref, scope)) else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._refuse_undeclared(query)
        self._embed()
        if query.text in self._gold:
            gold = self._gold[query.text]
            return [replace(one.hit, score=1.0) for one in self._in(scope) if one.hit.text in gold][: query.top_k]
        score_of = self._score_of(query.text)
        scored = [
            replace(one.hit, score=score_of(self._index_text(one.hit)))
            for one in (self._searchable(scope) if query.as_of is None else self._as_of(query.as_of, scope))
            if not query.kinds or one.hit.kind in query.kinds
        ]
        least = max(query.min_score or 0.0, 1e-9)
        found = [hit for hit in scored if (hit.score or 0.0) >= least and self._meets_query(hit, query)]
        known = {one.hit.id: one for one in self._memories}
        return sorted(found, key=lambda hit: self._place(hit, known.get(hit.id)))[: query.top_k]

    def _score_of(self, asked: str) -> Callable[[str], float]:
        """Return what says how like the question a text is: by the vectors of the story, else by shared words."""
        if self._vectors:
            return lambda text: matching.cosine(self._vector_of(asked), self._vector_of(text))
        words = matching.words_of(asked)
        return lambda text: len(words & matching.words_of(text)) / max(1, len(words))

    def _vector_of(self, text: str) -> Sequence[float]:
        if text not in self._vectors:
            raise StoryError(f"the story has no vector for {text!r:.80}: give it one under 'vectors:'")
        return self._vectors[text]

    async def context(self, query: Query, scope: Scope) -> str:
        self._refuse_undeclared(query)
        return "\n".join(one.hit.text for one in self._visible(scope))

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if job in _TIDYING:
            return {"memories": self._reindex()}
        if job == "snapshot":
            return {"rows": encode([one.hit for one in self._in(scope)])}
        if job == "restore":
            rows: Any = args["snapshot"]
            items = [Item(text=one["text"], key=one.get("key")) for one in rows]
            return {"memories": len((await self.add(items, scope)).items)}
        if job in ("share", "unshare"):
            self._share(scope.user, str(args["user"]), on=job == "share")
            self._save()
            return None
        if job != "export":
            raise NotSupported(f"job.{job}")
        self._exported.add(scope.user)
        self._save()
        return {"memories": len(self._in(scope))}

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what not in ("index", "log"):
            raise NotSupported(f"inspect.{what}")
        return {"files": "oracle.index"} if what == "index" else self._log

    def _read(self, items: Sequence[Item]) -> Sequence[Item]:
        """Ask the model what to keep of texts: all; an answer without it is refused aloud."""
        self._misreads += self._reader != "ok"
        if self._reader not in ("ok", "slow"):
            raise Refused("the model did not say what to remember; nothing is stored")
        return items

    def _embed(self) -> None:
        """Embed a text; a model that is down is said aloud."""
        self._unembedded += not self._is_embedding
        if not self._is_embedding:
            raise Refused("the embedder gives no vectors; nothing is changed")

    def _share(self, owner: str, other: str, *, on: bool) -> None:
        self._shared = self._shared | {(owner, other)} if on else self._shared - {(owner, other)}

    def _owners(self, scope: Scope) -> frozenset[str]:
        """Return whose memories are seen: one's own, and what others share."""
        return frozenset({scope.user, *(owner for owner, other in self._shared if other == scope.user)})

    def _reindex(self) -> int:
        return len(self._memories)

    def _refuse_undeclared(self, query: Query) -> None:
        if query.token_budget is not None:
            raise NotSupported("search.budget")

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return [one.hit for one in self._listable(scope) if not kinds or one.hit.kind in kinds][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        self._embed()
        if old is None:
            raise Refused(f"no memory has the {'key' if ref.id is None else 'id'} '{ref.id or ref.key}'")
        hit = self._change(old, item)
        self._save()
        return Receipt(items=(_receipt(hit, "updated"),))

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        found = self._about(about, scope)
        if not found:
            raise Refused(f"nothing is remembered about {', '.join(about)}")
        receipt = _receipt(self._change(found[0], item), "updated")
        self._forget(found[1:], durable=False)
        self._save()
        return Receipt(items=(receipt,))

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        self._forget(found := self._about(about, scope), durable=durable)
        self._save()
        return len(found)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        everything = replace(ref, durable=False) == Ref()
        gone = self._in(scope) if everything else [found for found in [self._find(ref, scope)] if found]
        self._forget(gone, durable=ref.durable)
        self._save()
        return bool(gone)

    def _trusted_metadata(self, item: Item) -> dict[str, Json]:
        """Return the metadata of an item; that it is verified only a user can say."""
        is_trusted = not matching.distrust(item.source)
        return {name: value for name, value in item.metadata.items() if is_trusted or name != VERIFIED}

    def _memory_of(self, item: Item, scope: Scope, hit: Hit) -> OracleMemory:
        now = self._clock.now() if self._clock else None
        until = now + timedelta(seconds=item.ttl) if now and item.ttl is not None else None
        return OracleMemory(user=scope.user, session=scope.session, hit=hit, begun=now.isoformat() if now else None,
                      until=until.isoformat() if until else None, source=item.source, role=item.role)  # fmt: skip

    def _change(self, old: OracleMemory, item: Item) -> Hit:
        hit = replace(old.hit, text=item.text, metadata={**old.hit.metadata, **item.metadata})
        self._put(replace(old, hit=hit, begun=self._clock.now().isoformat() if self._clock else None), old)
        return hit

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[OracleMemory]:
        return [one for one in self._in(scope) if any(matching.is_about(one.hit.text, thing) for thing in about)]

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        """Take memories out, with all that they said before."""
        ids = {(one.user, one.hit.id) for one in gone}
        self._log += [{"op": "delete", "id": one.hit.id} for one in gone]
        texts = [one for one in self._past if (one.memory.user, one.memory.hit.id) in ids]
        if durable:
            for memory in (*gone, *(one.memory for one in texts)):
                self._forgotten |= {f"{memory.user}/{mark}" for mark in matching.fingerprints(memory.hit.text)}
        self._past = [one for one in self._past if one not in texts]
        self._memories = [one for one in self._memories if one not in gone]

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        return not self._forgotten.isdisjoint(f"{scope.user}/{mark}" for mark in matching.fingerprints(item.text))

    def _as_of(self, moment: str, scope: Scope) -> Sequence[OracleMemory]:
        """Return what was remembered then, of what still may be told."""
        then = datetime.fromisoformat(moment)
        told = [one for one in self._in(scope) if one.begun is None or datetime.fromisoformat(one.begun) <= then]
        past = [
            one.memory
            for one in self._past
            if one.memory.user == scope.user
            and (one.memory.begun is None or datetime.fromisoformat(one.memory.begun) <= then)
            and then < datetime.fromisoformat(one.ended)
        ]
        return [*told, *past]

    def _place(self, hit: Hit, memory: OracleMemory | None) -> tuple[Any, ...]:
        """Return what the best hit has least of; of two that fit alike, the later one is better."""
        told = memory.begun if memory else hit.created_at
        begun = datetime.fromisoformat(told).timestamp() if told else 0.0
        return (matching.is_stuffed(hit.text), self._distrust(memory), -(hit.score or 0.0), -begun, hit.id or "")

    def _distrust(self, memory: OracleMemory | None) -> int:
        return max(matching.distrust(memory.source), matching.distrust(memory.role)) if memory else 0

    def _is_sound(self, digest: str, text: str) -> bool:
        return digest == self._seal(text)

    def _seal(self, text: str) -> str:
        return matching.text_digest(text)

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._visible(scope)

    def _listable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._visible(scope)

    def _visible(self, scope: Scope) -> Sequence[OracleMemory]:
        """Return one's own memories and those that others share; only one's own can be changed."""
        return [one for owner in sorted(self._owners(scope)) for one in self._in(replace(scope, user=owner))]

    def _index_text(self, hit: Hit) -> str:
        return hit.text

    def _meets_query(self, hit: Hit, query: Query) -> bool:
        ways = query.where_any
        return self._fits(hit, query.where) and (not ways or any(self._fits(hit, one) for one in ways))

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        own = hit.metadata
        return all(self._meets(name in own, own.get(name), condition) for name, condition in where.items())

    def _meets(self, is_there: bool, own: Json, condition: Json) -> bool:  # noqa: FBT001  (a value may be None)
        operators = operators_of(condition)
        if not operators:
            return is_there and matching.is_same_json(own, condition)
        return all(self._holds(is_there, own, *one) for one in operators.items())

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (see above)
        if operator == "exists":
            return is_there == bound
        if operator == "ne":
            return not (is_there and matching.is_same_json(own, bound))
        if operator == "in":
            several = bound if isinstance(bound, Sequence) else [bound]
            return is_there and any(matching.is_same_json(own, one) for one in several)
        return is_there and matching.is_in_order(own, operator, bound)

    def _in(self, scope: Scope) -> Sequence[OracleMemory]:
        return [
            one
            for one in self._now_valid()
            if one.user == scope.user and (scope.session is None or one.session == scope.session)
        ]

    def _now_valid(self) -> Sequence[OracleMemory]:
        now = self._clock.now() if self._clock else None
        return [one for one in self._memories if now is None or not self._is_over(one, now)]

    def _is_over(self, one: OracleMemory, now: datetime) -> bool:
        return matching.is_past(one.hit.metadata.get(EXPIRES_AT), now) or matching.is_past(one.until, now)

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        # An id or a key names one thing, in whatever session it was said.
        for one in self._in(Scope(user=scope.user)):
            named = ref.key is not None and one.hit.key == ref.key if ref.id is None else one.hit.id == ref.id
            if named and (ref.kind is None or one.hit.kind == ref.kind):
                return one
        return None

    def _new(self, item: Item) -> Hit:
        self._count += 1
        now = self._clock.now().isoformat() if self._clock else None
        return Hit(id=f"m{self._seed}-{self._count}", text=item.text, kind=item.kind, key=item.key, created_at=now)

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        if old is None:
            self._memories.append(new)
        else:
            self._memories[self._memories.index(old)] = new
            if self._clock:
                self._past.append(Past(memory=old, ended=self._clock.now().isoformat()))

    def _export(self) -> None:
        """Write what was exported again, as it is now."""
        if self._exported and self._path:
            texts = {user: [one.hit.text for one in self._in(Scope(user=user))] for user in sorted(self._exported)}
            self._path.with_name("export.json").write_text(json.dumps(texts), encoding="utf-8")

    def _catch_up(self) -> None:
        """Read the file where another process has written it since."""
        text = self._turns.news()
        if text is None:
            return
        digest, _, text = text.partition("\n")
        if not self._is_sound(digest, text):
            raise Refused("the file of the memory was changed by somebody else")
        data = json.loads(text)
        self._count, self._memories = data["made"], [decode(OracleMemory, one) for one in data["memories"]]
        self._past, self._forgotten = [decode(Past, one) for one in data["past"]], set(data["forgotten"])
        self._shared = {(owner, other) for owner, other in data["shared"]}

    def _save(self) -> None:
        if self._path is None:
            return
        kept = {"memories": encode(self._memories), "past": encode(self._past), "forgotten": sorted(self._forgotten)}
        kept["shared"] = sorted(self._shared)
        text = json.dumps({"made": self._count, **kept})
        draft = self._path.with_suffix(".tmp")
        draft.write_text(f"{self._seal(text)}\n{text}", encoding="utf-8")
        self._path.with_name("oracle.index").write_text(matching.text_digest(text), encoding="utf-8")
        self._export()
        os.replace(draft, self._path)  # noqa: PTH105  (a rename is whole or not at all, even if we are killed)
        self._turns.note()


def _receipt(hit: Hit, outcome: str) -> ReceiptItem:
    return ReceiptItem(id=hit.id, text=hit.text, outcome=outcome, kind=hit.kind, key=hit.key)


class Turns:
    """The turns of one process at a file that several have open: one at a time works on it, and sees what others wrote.

    What runs at the same time within the process shares its turn.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._inside = 0
        self._lock = -1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Keep other processes out; the system lets go of the lock when this one is killed."""
        while not self._inside and not self._take():  # noqa: ASYNC110  (another process wakes nobody here)
            await asyncio.sleep(_PAUSE_SECONDS)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                os.close(self._lock)

    def news(self) -> str | None:
        """Return the file if it is not as this process left or read it, else None."""
        now = self._state()
        if now is None or now == self._seen:
            return None
        self._seen = now
        return self._path.read_text(encoding="utf-8")

    def note(self) -> None:
        """Take the file as it is for one's own."""
        self._seen = self._state()

    def _take(self) -> bool:
        # The folder: a file for the lock would be one more that a story looks into.
        self._lock = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            return False
        return True

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


class OracleFactory(TargetFactory):
    """Makes oracles."""

    name: ClassVar[str] = "control:oracle"
    spec: ClassVar[str | None] = "memstory.controls:OracleFactory"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        # Whatever an option tunes, it does not change what a perfect memory holds.
        return frozenset({*_WORDS.split(), *(f"option.{name}" for name in options)})

    def target(self) -> Target:
        return Oracle()
