"""Carries out the steps of a story on a stage and records each: repetition, parallel users, crashes, polling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

from memstory.contract.codec import encode
from memstory.contract.errors import Refused, StoryError, TargetError
from memstory.contract.target import Capability, Scope, Tree
from memstory.datasets import Bounds
from memstory.language.references import pick, substitute
from memstory.language.story import Step
from memstory.language.words import WORDS
from memstory.models.judge import Judge
from memstory.results.recording import Probe, StepRecord, Witness
from memstory.running.evidence.injected import Injected
from memstory.running.evidence.judgements import judgements
from memstory.running.evidence.probing import ECHOES, Prober, Twin
from memstory.running.evidence.workspace_files import inspect_files, tampered
from memstory.running.stage import Stage

Holds = Callable[[Step, StepRecord], bool]
"""Whether all that a step expects is so; given from outside, because the runner judges nothing."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5
_OF_PARTS = frozenset({"repeat", "crash", "other_process"})


@dataclass(slots=True, kw_only=True)
class Branch:
    """One line of action: its saved names and its records. `parallel` gives each pass its own branch."""

    names: dict[str, Tree] = field(default_factory=dict)
    records: list[StepRecord] = field(default_factory=list)
    twins: list[Twin] = field(default_factory=list)


class Performer:
    """Does steps, in order, and knows at any time where it is."""

    def __init__(
        self,
        stage: Stage,
        bounds: Bounds,
        holds: Holds | None = None,
        *,
        able: frozenset[Capability] = frozenset(),
        in_files: bool = False,
        settles: bool = True,
        judge: Judge | None = None,
    ) -> None:
        self._judge = judge
        self._stage = stage
        self._able = able
        self._in_files = in_files
        self._bounds = bounds
        self._holds = holds
        self._settles = settles
        self.injected = Injected()
        self._begun: tuple[int, ...] = ()
        self._broken: tuple[int, ...] = ()
        self._at_once = 0
        self._nested: Mapping[str, Callable[[Step, Mapping[str, Tree], tuple[int, ...], Branch], Awaitable[None]]] = {
            "repeat": self._repeat,
            "parallel": self._parallel,
            "crash": self._crash,
            "other_process": self._other_process,
        }

    @property
    def place(self) -> tuple[int, ...]:
        """The path of the step that broke, else of the one that was begun last."""
        return self._broken or self._begun

    async def perform(self, steps: Sequence[Step], branch: Branch, path: tuple[int, ...] = ()) -> None:
        """Do `steps` one after the other, adding their records to `branch`."""
        for index, step in enumerate(steps):
            try:
                await self._perform_one(step, (*path, index), branch)
            except Exception:
                self._broken = self._broken or (*path, index)
                raise

    async def _perform_one(self, step: Step, path: tuple[int, ...], branch: Branch) -> None:
        self._begun = path
        until = _waits(step)
        begun, pause, asked = perf_counter(), _FIRST_PAUSE_SECONDS, self._stage.model_use
        record = await self._attempt(step, path, branch)
        while until and self._holds and perf_counter() - begun < until and not self._holds(step, record):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            record = await self._attempt(step, path, branch)
        use = self._stage.model_use
        # A `repeat` has it step by step; of steps that run at once, nobody can say whose a call was.
        if use is not None and not self._at_once and step.op not in _OF_PARTS:
            used = use.since(asked)
            record = replace(record, model=used) if used.calls > 0 else record
        branch.records.append(record)

    async def _attempt(self, step: Step, path: tuple[int, ...], branch: Branch) -> StepRecord:
        word, args = WORDS[step.op], substitute(step.args, branch.names)
        if word.names_paths:
            self._bounds.check(f"{step.op}: args", args.get("args"), step.mark)
        user, session = substitute([step.user, step.session], branch.names)
        scope = self._stage.scope(user, session, in_session=word.in_session)
        before = await self._witnessed(step, args, scope)
        at, begun, embedded = self._stage.clock.now().isoformat(), perf_counter(), self._stage.target.embedding_seconds
        result: Tree = None
        error: str | None = None
        try:
            if step.op in self._nested:
                await self._nested[step.op](step, args, path, branch)
            else:
                result = await self._do(step.op, args, scope)
        except Refused as refusal:
            error = str(refusal)
        seconds = perf_counter() - begun
        # Of steps that run at once, nobody can say whose the embedder's time was.
        is_known = word.request is not None and not self._at_once
        embedding = self._stage.embedding_since(embedded) if is_known else None
        saved = {name: pick(result, field_path) for name, field_path in step.save.items()}
        record = StepRecord(
            path=path,
            op=step.op,
            args=args,
            user=scope.user,
            session=scope.session,
            at=at,
            result=result,
            error=error,
            names={**branch.names, **saved},
            seconds=seconds,
            embedding_seconds=embedding,
        )
        prober = Prober(stage=self._stage, able=self._able, scope=scope, in_files=self._in_files)
        try:
            if word.is_settled and self._settles:
                await self._stage.settle()
            after = await self._witnessed(step, args, scope) if before is not None else None
            branch.twins += _twins(args, scope.user) if step.op == "add" and error is None else []
            probed = await self._probe(step, prober, branch, result) if step.forbid else None
            judged = await judgements(self._judge, step, args.get("text", ""), result, branch.names) if result else {}
        except BaseException:
            # What was seen by then counts, unless it was to come right later.
            if not _waits(step):
                branch.records.append(replace(record, probe=prober.found_so_far))
            raise
        branch.names.update(saved)
        witness = Witness(before=before, after=after) if before is not None and after is not None else None
        return replace(record, probe=probed, judged=judged, witness=witness)

    async def _witnessed(self, step: Step, args: Mapping[str, Tree], scope: Scope) -> Sequence[str] | None:
        wanted = [one.argument for expected in step.expect if expected.field == "honest" for one in expected.matchers]
        if not wanted:
            return None
        asked = [args["text"], *(one[name] for one in wanted for name in ("of", "was") if name in one)]
        prober = Prober(stage=self._stage, able=self._able, scope=scope)
        return await prober.texts(asked)

    async def _probe(self, step: Step, prober: Prober, branch: Branch, result: Tree) -> Probe:
        texts = [str(text) for text in substitute([*step.forbid], branch.names)]
        seen = None if step.op in ECHOES else result
        return await prober.probe(texts, branch.twins, seen)

    async def _do(self, op: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        stage = self._stage
        match op:
            case "new_session":
                stage.sessions.begin(scope.user, args.get("name"))
            case "at":
                await self._move_clock(_moment(args["moment"]))
            case "advance":
                await self._move_clock(stage.clock.now() + timedelta(microseconds=args["microseconds"]))
            case "wait":
                await stage.wait(timedelta(microseconds=args["microseconds"]))
            case "fault":
                await self.injected.begin(stage, args["part"], args["mode"])
                return await self._asked(op, args, scope)
            case "tamper":
                await stage.reopen(lambda: tampered(Path(stage.env.workspace), args))
            case "restart":
                await self.injected.end(stage)
                await (stage.change_embedder() if args else stage.reopen())
            case "inspect" if args["what"] == "files":
                folder = Path(stage.env.workspace)
                return await asyncio.to_thread(inspect_files, folder, tuple(args.get("search_for") or ()))
            case "say" if stage.agent is not None:
                return encode(await stage.agent.say(args["text"], scope))
            case _:
                return await self._asked(op, args, scope)
        return None

    async def _asked(self, op: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        make = WORDS[op].request
        if make is None:
            raise NotImplementedError(f"the harness does not know how to carry out '{op}'")
        return encode(await self._stage.target.perform(make(args, scope)))

    async def _move_clock(self, moment: datetime) -> None:
        if moment < self._stage.clock.now():
            raise StoryError(f"time cannot go back, from {self._stage.clock.now().isoformat()} to {moment.isoformat()}")
        await self._stage.move_to(moment)

    async def _repeat(self, step: Step, args: Mapping[str, Tree], path: tuple[int, ...], branch: Branch) -> None:
        outer = branch.names.get("i")
        for number in range(args["times"]):
            branch.names["i"] = number
            await self.perform(step.steps, branch, (*path, number))
        _restore(branch.names, outer)

    async def _parallel(self, step: Step, args: Mapping[str, Tree], path: tuple[int, ...], branch: Branch) -> None:
        outer = branch.names.get("i")
        passes = [Branch(names={**branch.names, "i": number}, twins=[*branch.twins]) for number in range(args["times"])]
        running = (self.perform(step.steps, one, (*path, number)) for number, one in enumerate(passes))
        self._at_once += 1
        try:
            done = await asyncio.gather(*running, return_exceptions=True)
        finally:
            self._at_once -= 1
            # Records in the order of the passes, not of the finish, so that two runs of a story read alike.
            for one in passes:
                branch.records += one.records
                branch.names.update(one.names)
            _restore(branch.names, outer)
        for error in done:
            if error is not None:
                raise error

    async def _other_process(
        self, step: Step, _args: Mapping[str, Tree], path: tuple[int, ...], branch: Branch
    ) -> None:
        stage, able = await self._stage.open_other(), self._able
        other = Performer(stage, self._bounds, self._holds, able=able, settles=self._settles, judge=self._judge)
        other._at_once = self._at_once
        try:
            await other.perform(step.steps, branch, path)
        except Exception:
            self._broken = self._broken or other.place
            raise

    async def _crash(self, step: Step, args: Mapping[str, Tree], path: tuple[int, ...], branch: Branch) -> None:
        await self.injected.end(self._stage)
        if step.steps:
            in_flight = asyncio.create_task(self.perform(step.steps, branch, path))
            # Long enough for the request to be on its way, not for the answer to be back.
            await asyncio.sleep(_FIRST_PAUSE_SECONDS / 10)
            await self._stage.kill()
            try:
                await in_flight
            except TargetError:
                # What was in flight when the process died has no answer: that is what the story asked for.
                self._broken = ()
        else:
            await self._stage.kill()
        await self._stage.revive()


def _waits(step: Step) -> float:
    """Return for how many seconds a step is asked again until all that it expects is so."""
    return max((expected.eventually_seconds or 0.0 for expected in step.expect), default=0.0)


def _twins(args: Mapping[str, Tree], user: str) -> list[Twin]:
    marked = [item for item in args["items"] if item.get("twin")]
    return [
        Twin(asked=item["text"], wanted=item["text"] if item["twin"] is True else item["twin"], user=user)
        for item in marked
    ]


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _restore(names: dict[str, Tree], number: Tree) -> None:
    """Give `${i}` back to the step around, or forget it."""
    if number is None:
        names.pop("i", None)
    else:
        names["i"] = number
