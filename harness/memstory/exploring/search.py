"""Searches for programs that break a promise: draws, plays, plays again, shrinks, and writes each cause as a story."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from memstory.contract.errors import MemstoryError, SetupError
from memstory.contract.target import Environment, TargetFactory
from memstory.contract.values import Capability, Tree
from memstory.controls import OracleFactory
from memstory.exploring.model import LOSSES, PROMISES, Violation
from memstory.exploring.playing import Playthrough, play_program
from memstory.exploring.programs import RULES, Program, draw
from memstory.exploring.shrinking import shrink
from memstory.exploring.stories import read_story, story_text
from memstory.playing import play
from memstory.results.outcomes import CaseResult, Harm
from memstory.running.runner import RunOptions
from memstory.running.stage import Stage, host_folders, open_stage

READS: Final[frozenset[Capability]] = frozenset({"list", "search"})
"""One of these is needed beside `add`: else nothing that was stored can be seen."""
SHARED_EXAMPLES: Final = 10
"""How many programs use one open memory, each with users of its own."""
SHRINKING_SECONDS: Final = 10.0
REPEATS: Final = 3
"""How often a failure is played again, alone and on a fresh memory; each time it must come again to be a finding."""
TRIES: Final = 10
"""How often at most one is that does not come again each time, to say how often it does."""
BARRED_SHARE: Final = 0.8
"""In how many draws the features of known findings are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One cause: a promise that an operation breaks, and the features without which it does not.

    `repeated` of `plays` on a fresh memory showed it again. It was met after so many `seconds` and `operations`,
    and shrunk in `shrink_seconds`. `story` is the YAML of a story, `written` why there is none or what became of it
    when it was run: `fails` is what it should say.
    """

    promise: str
    op: str
    features: Sequence[str]
    says: str
    seed: int
    number: int
    repeated: int
    plays: int
    steps: int
    seconds: float = 0.0
    operations: int = 0
    shrink_seconds: float = 0.0
    story: str = ""
    written: str = ""
    seen: int = 1

    @property
    def name(self) -> str:
        """`kept/list/batch, text:long`: promise, operation, features."""
        return "/".join((self.promise, self.op, ", ".join(self.features) or "plain"))

    def is_within(self, other: Breach) -> bool:
        """Return whether it is the cause of another finding: the same broken promise, by fewer features."""
        return (self.promise, self.op) == (other.promise, other.op) and set(self.features) <= set(other.features)

    @property
    def title(self) -> str:
        """A sentence without its end."""
        title = PROMISES[self.promise].title
        return f"{title[0].upper()}{title[1:]}: {self.op}{', ' if self.features else ''}{', '.join(self.features)}"

    @property
    def harm(self) -> Harm:
        """What it does to a user."""
        return PROMISES[self.promise].harm


@dataclass(slots=True, kw_only=True)
class Exploration:
    """What an exploration did and found so far; `operations` counts them by kind, `untried` those that were declined.

    `left_out` has the rules and the promises that the target cannot be asked for, each with the capabilities that it
    lacks. `unsteady` are violations that did not come again each time on a fresh memory, or accuse a perfect one too.
    """

    target: str
    seed: int
    able: Sequence[Capability] = ()
    examples: int = 0
    seconds: float = 0.0
    operations: dict[str, int] = field(default_factory=dict)
    untried: dict[str, int] = field(default_factory=dict)
    findings: list[Breach] = field(default_factory=list)
    unsteady: list[Breach] = field(default_factory=list)

    @property
    def left_out(self) -> Mapping[str, Sequence[Capability]]:
        """Rules that were not drawn and promises that were not asked for, with what the target lacks for them."""
        able = frozenset(self.able)
        asked = {**RULES, **{f"promise {name}": promise.needs for name, promise in PROMISES.items()}}
        return {name: sorted(needs - able) for name, needs in asked.items() if needs - able}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a search ends: after `seconds`, or earlier, after so many `examples` or `findings`."""

    seconds: float = 60.0
    examples: int | None = None
    findings: int | None = None


Notice = Callable[[Exploration], None]
"""Called after each example and each finding."""


async def search(
    factory: TargetFactory,
    *,
    name: str | None = None,
    options: Mapping[str, Tree] | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    hosted: bool = False,
    notice: Notice = lambda _: None,
    timer: Callable[[], float] = monotonic,
) -> Exploration:
    """Explore a target of `factory`, and return what was found; `timer` counts the seconds.

    Raises:
        SetupError: the target stores nothing, or shows nothing of what it stores.
    """
    options, limits = options or {}, limits or Limits()
    able = factory.abilities(options)
    if factory.spec is None:
        # Without it no other process can make the target.
        able -= {"crash", "other_process"}
    found = Exploration(target=name or factory.name, seed=seed, able=sorted(able))
    if "add" not in able or not READS & able:
        raise SetupError(
            f"'{found.target}' cannot be explored: it needs add, and list or search; it has {', '.join(sorted(able))}"
        )
    with TemporaryDirectory(prefix="memstory-explore-") as folder:
        await factory.start(Path(folder))
        ground = _Ground(factory=factory, folder=Path(folder), options=options, able=able, hosted=hosted)
        try:
            await _Search(found=found, ground=ground, limits=limits, notice=notice, timer=timer).go()
        finally:
            await ground.close()
            await factory.stop()
    return found


@dataclass(slots=True, kw_only=True)
class _Ground:
    """Where programs are played: fresh memories, and one that is open for many."""

    factory: TargetFactory
    folder: Path
    options: Mapping[str, Tree]
    able: frozenset[Capability]
    hosted: bool
    count: int = 0
    shared: Stage | None = None
    played: int = 0

    async def play_together(self, program: Program) -> Playthrough:
        """Play a program with users of its own on the memory that is open."""
        if self.shared is None or self.played >= SHARED_EXAMPLES:
            await self.close()
            self.shared = await self._open(hosted=self.hosted)
        self.played += 1
        return await play_program(program, self.shared, self.able, mark=f"{self.count}x{self.played}")

    async def play_fresh(self, program: Program) -> Playthrough:
        """Play a program on a memory of its own."""
        stage = await self._open(hosted=self.hosted or program.needs_process)
        try:
            return await play_program(program, stage, self.able)
        finally:
            await self._close(stage)

    async def close(self) -> None:
        """Close the shared memory, so that the next program gets a fresh one."""
        stage, self.shared, self.played = self.shared, None, 0
        if stage is not None:
            await self._close(stage)

    async def _open(self, *, hosted: bool) -> Stage:
        self.count += 1
        workspace = self.folder / "memories" / str(self.count)
        options = self.factory.cheapest_options(self.options, self.able)
        stage = open_stage(
            Environment(workspace=str(workspace), owner=f"explore{self.count}", options=options),
            self.factory,
            hosted=hosted,
        )
        stage.has_clock = "clock" in self.able
        await stage.open()
        return stage

    async def _close(self, stage: Stage) -> None:
        # A memory that broke in a program may not close any more; the program's violation says so.
        with suppress(MemstoryError):
            await stage.close()
        workspace = Path(stage.env.workspace)
        for left in (workspace, *host_folders(workspace)):
            # In this thread: it is a few files, and another thread costs more than they do.
            shutil.rmtree(left, ignore_errors=True)


@dataclass(slots=True, kw_only=True)
class _Search:
    found: Exploration
    ground: _Ground
    limits: Limits
    notice: Notice
    timer: Callable[[], float]
    stories: int = 0
    begun: float = 0.0

    async def go(self) -> None:
        """Play one program after the other until the time is over."""
        self.begun = self.timer()
        while not self._is_over():
            number = self.found.examples
            program = draw(self.found.seed, number, self.ground.able, self._draw_bans(number))
            is_alone = program.needs_own_memory or program.needs_process
            played = await (self.ground.play_fresh(program) if is_alone else self.ground.play_together(program))
            self.found.examples += 1
            _count(self.found.operations, played.counts)
            _count(self.found.untried, played.untried)
            self.found.seconds = self.timer() - self.begun
            if played.violation is not None:
                await self.ground.close()
                await self._examine(program, played, played.violation)
            self.found.seconds = self.timer() - self.begun
            self.notice(self.found)

    def _is_over(self) -> bool:
        done = ((self.found.examples, self.limits.examples), (len(self.found.findings), self.limits.findings))
        if any(most is not None and count >= most for count, most in done):
            return True
        return self.timer() - self.begun >= self.limits.seconds

    def _draw_bans(self, number: int) -> frozenset[str]:
        rng = random.Random(f"barred/{self.found.seed}/{number}")  # noqa: S311  (draws, not secrets)
        # One feature of each known cause is enough to keep it away.
        return frozenset(
            rng.choice(list(one.features))
            for one in (*self.found.findings, *self.found.unsteady)
            if one.features and rng.random() < BARRED_SHARE
        )

    async def _examine(self, program: Program, played: Playthrough, violation: Violation) -> None:
        """Play a failure again, shrink it and note its cause, unless that is known."""
        op = program.operations[played.place].op
        program = replace(program, operations=program.operations[: played.place + 1])
        if self._note_known(violation, op, program):
            return
        wanted, met_at, shrunk_from = violation, self.found.seconds, self.timer()

        async def fails(candidate: Program) -> bool:
            return _is_like(await self.ground.play_fresh(candidate), wanted, op, candidate)

        again = [await fails(program) for _ in range(REPEATS)]
        if not all(again):
            again += [await fails(program) for _ in range(TRIES - REPEATS)]
        else:
            program = await shrink(program, fails, SHRINKING_SECONDS)
            last = (await self.ground.play_fresh(program)).violation
            violation = last or violation
        if self._note_known(violation, op, program):
            return
        finding = Breach(
            promise=violation.promise, op=op, features=sorted(program.tags), says=violation.says,
            seed=self.found.seed, number=program.number, repeated=sum(again), plays=len(again),
            steps=len(program.operations),
            seconds=met_at, operations=sum(self.found.operations.values()), shrink_seconds=self.timer() - shrunk_from,
        )  # fmt: skip
        if all(again):
            finding = await self._with_story(finding, program, violation)
        if all(again) and not finding.written.startswith(DOUBTFUL):
            # What needs less is the cause of what needed more.
            wider = [one for one in self.found.findings if finding.is_within(one)]
            finding = replace(finding, seen=1 + sum(one.seen for one in wider))
            self.found.findings = [one for one in self.found.findings if one not in wider]
            self.found.findings.append(finding)
        else:
            self.found.unsteady.append(finding)

    def _note_known(self, violation: Violation, op: str, program: Program) -> bool:
        for among in (self.found.findings, self.found.unsteady):
            for place, one in enumerate(among):
                if one.promise == violation.promise and one.op == op and set(one.features) <= program.tags:
                    if violation.promise == "answers" and _error_kind(one.says) != _error_kind(violation.says):
                        continue
                    among[place] = replace(one, seen=one.seen + 1)
                    return True
        return False

    async def _with_story(self, finding: Breach, program: Program, violation: Violation) -> Breach:
        self.stories += 1
        id_ = f"X{self.stories}"
        text = story_text(id_, finding.title, program, violation)
        story = read_story(text)
        if isinstance(story, str):
            return replace(finding, written=f"the language of stories cannot say it: {story}")
        options = RunOptions(target=self.ground.options, hosted=self.ground.hosted)
        own = await play(story, self.ground.factory, self.ground.folder / "stories", options=options)
        if not _shows(own, finding, len(story.steps)):
            return replace(finding, story=text, written=f"the story is {own.outcome} on this target: {own.reason}")
        perfect = await play(story, OracleFactory(), self.ground.folder / "stories")
        if perfect.outcome not in ("passed", "unsupported"):
            return replace(finding, story=text, written=f"{DOUBTFUL}: {perfect.outcome}, {perfect.reason}")
        return replace(finding, story=text, written=FAILS)


FAILS: Final = "fails"
"""What became of a story that says what its finding says: it fails on the target and passes on the oracle."""
DOUBTFUL: Final = "the oracle does not pass the story"
"""What became of one that accuses a perfect memory too: the promise was too hard, and nobody is to be blamed for it."""
_LIKE: Final = 60
"""Characters of two errors that must be equal if they are to be one."""


def _count(totals: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        totals[name] = totals.get(name, 0) + count


def _is_like(played: Playthrough, violation: Violation, op: str, program: Program) -> bool:
    other = played.violation
    if other is None or program.operations[played.place].op != op:
        return False
    if other.promise != violation.promise and not {other.promise, violation.promise} <= LOSSES:
        return False
    return violation.promise != "answers" or _error_kind(other.says) == _error_kind(violation.says)


def _shows(own: CaseResult, finding: Breach, steps: int) -> bool:
    """Return whether a story ended as its finding did: by the same error, or by what its last step expects."""
    if finding.promise == "answers":
        said = _error_kind(finding.says.partition(": ")[2])
        return own.outcome == "error" and said in _error_kind(own.reason or "", None)
    failures = [one for one in own.deciding.verdicts if not one.passed] if own.deciding else []
    return own.outcome == "failed" and all(one.step[:1] == (steps - 1,) for one in failures)


def _error_kind(says: str, length: int | None = _LIKE) -> str:
    """Return the beginning of an error without what differs from run to run."""
    return re.sub(r"\d+", "N", says)[:length]
