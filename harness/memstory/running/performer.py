"""Carries out the steps of a story on a stage and records each: repetition, parallel users, crashes, polling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

from memstory.contract.codec import encode
from memstory.contract.errors import NotSupported, Refused, SetupError, StoryError, TargetError
from memstory.contract.target import Capability, Request, Scope, Target, Tree, Usage
from memstory.language.references import pick, substitute
from memstory.language.story import Step
from memstory.language.story_paths import Bounds
from memstory.language.words import WORDS
from memstory.models.judge import Judge
from memstory.results.recording import Probe, StepRecord, Witness
from memstory.running.probing import ECHOES, Prober, Twin
from memstory.running.stage import Stage
from memstory.running.workspace_files import inspect_files, tamper

Holds = Callable[[Step, StepRecord], bool]
"""Whether all that a step expects is so; given from outside, because the runner judges nothing."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5
_OF_PARTS = frozenset({"repeat", "crash", "other_process"})
_JUDGED: Final = "judged"
_HEALED: Final = "ok"


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
        self.faults = InjectedFaults()
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
        begun, pause = perf_counter(), _FIRST_PAUSE_SECONDS
        record = await self._attempt(step, path, branch)
        while until and self._holds and perf_counter() - begun < until and not self._holds(step, record):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            earlier, record = record.model, await self._attempt(step, path, branch)
            both = record.model + earlier if record.model and earlier else record.model or earlier
            record = replace(record, model=both)
        branch.records.append(record)

    async def _attempt(self, step: Step, path: tuple[int, ...], branch: Branch) -> StepRecord:
        word, args = WORDS[step.op], substitute(step.args, branch.names)
        if word.may_name_paths:
            self._bounds.check(f"{step.op}: args", args.get("args"), step.mark)
        user, session = substitute([step.user, step.session], branch.names)
        scope = self._stage.scope(user, session, in_session=word.in_session)
        before = await self._witness_texts(step, args, scope)
        # It takes the requests of other steps, and of what was looked for in between.
        at, used, begun = self._stage.clock.now().isoformat(), self._stage.usage(), perf_counter()
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
        usage = self._stage.usage().since(used) if is_known else Usage()
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
            embedding_seconds=usage.embedding_seconds,
            requests=usage.requests,
        )
        prober = Prober(stage=self._stage, able=self._able, scope=scope, in_files=self._in_files)
        try:
            if word.settles and self._settles:
                await self._stage.settle()
            after = await self._witness_texts(step, args, scope) if before is not None else None
            branch.twins += _twins(args, scope.user) if step.op == "add" and error is None else []
            probed = await self._probe(step, prober, branch, result) if step.forbid else None
            judged = await judge_answers(self._judge, step, args, result, branch.names) if result else {}
        except BaseException:
            # What was seen by then counts, unless it was to come right later.
            if not _waits(step):
                branch.records.append(replace(record, probe=prober.found_so_far))
            raise
        branch.names.update(saved)
        witness = Witness(before=before, after=after) if before is not None and after is not None else None
        model = self._stage.usage().since(used).model
        # A `repeat` has it step by step; of steps that run at once, nobody can say whose a call was.
        is_own = model is not None and model.calls > 0 and not self._at_once and step.op not in _OF_PARTS
        return replace(record, probe=probed, judged=judged, witness=witness, model=model if is_own else None)

    async def _witness_texts(self, step: Step, args: Mapping[str, Tree], scope: Scope) -> Sequence[str] | None:
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
                await self.faults.begin(stage, args["part"], args["mode"])
                return await self._ask(op, args, scope)
            case "tamper":
                await stage.reopen(lambda: tamper(Path(stage.env.workspace), args))
            case "restart" | "upgrade":
                await self.faults.end(stage)
                await _reopen(stage, op, args)
            case "inspect" if args["what"] == "files":
                folder = Path(stage.env.workspace)
                return await asyncio.to_thread(inspect_files, folder, tuple(args.get("search_for") or ()))
            case "say" if stage.agent is not None:
                return encode(await stage.agent.say(args["text"], scope))
            case _:
                return await self._ask(op, args, scope)
        return None

    async def _ask(self, op: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
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
        await self.faults.end(self._stage)
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


def is_judged(steps: Sequence[Step]) -> bool:
    """Return whether a judge is asked anywhere in `steps`."""
    return any(any(_judged_checks(step)) or is_judged(step.steps) for step in steps)


async def judge_answers(
    judge: Judge | None, step: Step, args: Mapping[str, Tree], result: Tree, names: Mapping[str, Tree]
) -> Mapping[str, bool]:
    """Return for the facts of each `judged:` of a step whether its answer fits them, for a recording to keep.

    Raises:
        NotSupported: nobody chose a judge.
        SetupError: the judge gave no clear verdict.
    """
    verdicts: dict[str, bool] = {}
    for one in _judged_checks(step):
        if judge is None:
            raise NotSupported("judge", "an answer is to be judged, and nobody chose a judge: --judge MODEL")
        facts = str(substitute(one["facts"], names))
        fits = await judge.fits(args.get("text", ""), facts, result["answer"], one["votes"])
        if fits is None:
            raise SetupError(f"the judge '{judge.name}' gave no clear verdict: no majority of {one['votes']} votes")
        verdicts[facts] = fits
    return verdicts


def _judged_checks(step: Step) -> Iterator[Mapping[str, Tree]]:
    for expected in step.expect:
        if expected.field == "answer":
            yield from (check.argument for check in expected.matchers if check.name == _JUDGED)


async def _reopen(stage: Stage, op: str, args: Mapping[str, Tree]) -> None:
    if op == "upgrade":
        await stage.change_release(older="to" in args)
    else:
        await (stage.change_embedder() if args else stage.reopen())


@dataclass(slots=True)
class InjectedFaults:
    """The parts that are failing now, each with how often that had been met when it began.

    Each fault must be seen to land, because one that is never hit proves nothing.
    """

    _since: dict[str, int] = field(default_factory=dict)

    async def begin(self, stage: Stage, part: str, mode: str) -> None:
        """Note that `part` behaves as `mode` from now on; TargetError if its last fault met nothing."""
        landed = await _fault_counts(stage)
        if part in self._since:
            self._check(part, landed)
        self._since.pop(part, None)
        if mode != _HEALED:
            self._since[part] = landed.get(part, 0)

    async def end(self, stage: Stage) -> None:
        """Note that all parts are whole again; TargetError if a fault met nothing."""
        if self._since:
            landed = await _fault_counts(stage)
            for part in self._since:
                self._check(part, landed)
            self._since.clear()

    def _check(self, part: str, landed: Mapping[str, Tree]) -> None:
        if landed.get(part, 0) <= self._since[part]:
            why = f"nothing used the {part} while it failed, so that this shows nothing"
            raise TargetError(f"the fault of the {part} did not land: {why}")


async def _fault_counts(stage: Stage) -> Mapping[str, int]:
    try:
        return await stage.target.perform(Request.of(Target.fault_counts))
    except NotSupported as error:
        raise TargetError(str(error)) from error
