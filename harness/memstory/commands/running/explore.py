"""`memstory explore`: programs that nobody wrote, until one shows that a memory breaks a promise."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from memstory.commands.command import FINDINGS, OK, Command, add_target_options, number_above, whole_number
from memstory.commands.output import FIRST_SIGN_SECONDS, say
from memstory.commands.target_list import load_typed
from memstory.contract.errors import SetupError
from memstory.contract.target import TargetFactory, Tree
from memstory.exploring.record import (
    KnownBreach,
    Record,
    clear_record,
    headline,
    read_known,
    read_record,
    story_name,
    unsteady_line,
    write_record,
)
from memstory.exploring.search import FAILS, Breach, Exploration, Limits, search
from memstory.exploring.stories import read_story
from memstory.playing import play
from memstory.reporting.document import visible
from memstory.running.runner import RunOptions
from memstory.targets.discovery import vendors_named

_SECONDS: Final = 60.0
_FOLDER: Final = "reports/explore"


def _options(parser: argparse.ArgumentParser) -> None:
    for words, more in (
        ("--target", {"action": "append", "metavar": "NAME", "required": True,
                      "help": "memory to explore: a name, a group, control:oracle, or module:Class; can be repeated"}),
        ("--seconds", {"type": number_above(0), "default": _SECONDS, "metavar": "N",
                       "help": f"for how long, each target (default: {_SECONDS:g})"}),
        ("--examples", {"type": whole_number, "metavar": "N", "help": "end after so many programs, if not earlier"}),
        ("--findings", {"type": whole_number, "metavar": "N", "help": "end after so many causes, if not earlier"}),
        ("--seed", {"type": int, "default": 0, "metavar": "N",
                    "help": "draws other programs (default: 0); the same seed draws the same"}),
        ("--known", {"type": Path, "metavar": "FILE",
                     "help": "TOML list of findings that are known, each with a reason"}),
        ("--replay", {"type": Path, "metavar": "FILE",
                      "help": "run the stories of an earlier explore.json again, and draw nothing"}),
        ("--report", {"type": Path, "default": Path(_FOLDER), "metavar": "DIR",
                      "help": f"where to write (default: {_FOLDER})"}),
        ("--isolate", {"action": "store_true", "help": "run each memory in a process of its own"}),
    ):  # fmt: skip
        parser.add_argument(words, **more)
    add_target_options(parser)


def _run(chosen: argparse.Namespace) -> int:
    options = dict(chosen.target_option)
    targets = load_typed(chosen.target)
    if chosen.replay:
        return asyncio.run(_replay(read_record(chosen.replay), targets, options, hosted=chosen.isolate))
    known = read_known(chosen.known) if chosen.known else ()
    done: list[Exploration] = []
    clear_record(chosen.report)
    for name, factory in targets.items():
        view = _View(folder=chosen.report, done=done, known=known, seconds=chosen.seconds)
        limits = Limits(seconds=chosen.seconds, examples=chosen.examples, findings=chosen.findings)
        exploring = search(factory, name=name, options=options, seed=chosen.seed, limits=limits,
                           hosted=chosen.isolate, notice=view.show)  # fmt: skip
        try:
            with vendors_named(name):
                done.append(asyncio.run(exploring))
        except KeyboardInterrupt:
            if view.latest is not None:
                view.end()
                _print_result(Record(explorations=[*done, view.latest], known=known), view.latest, chosen.report)
            raise
        finally:
            view.end()
        _print_result(Record(explorations=done, known=known), done[-1], chosen.report)
    record = Record(explorations=done, known=known)
    write_record(chosen.report, record)
    return FINDINGS if any(record.new_of(one) for one in done) else OK


class _View:
    """Writes what is found as soon as it is found, and shows on a terminal how far the search is."""

    def __init__(
        self, *, folder: Path, done: Sequence[Exploration], known: Sequence[KnownBreach], seconds: float
    ) -> None:
        self._folder, self._done, self._known, self._seconds = folder, done, known, seconds
        self._written, self._due, self._is_shown = -1, monotonic() + FIRST_SIGN_SECONDS, False
        self.latest: Exploration | None = None

    def show(self, now: Exploration) -> None:
        """Take note of an exploration that goes on: a kill loses nothing that was found."""
        self.latest = now
        count = len(now.findings) + len(now.unsteady)
        if count != self._written:
            self._written = count
            write_record(self._folder, Record(explorations=[*self._done, now], known=self._known))
        if sys.stderr.isatty() and monotonic() >= self._due:
            self._due, self._is_shown = monotonic() + FIRST_SIGN_SECONDS, True
            where = f"{now.target}: {now.seconds:.0f} of {self._seconds:g} s, {count} found in {headline(now)}"
            sys.stderr.write(f"\r\x1b[K{where}")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave the line as it was."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")


def _print_result(record: Record, one: Exploration, folder: Path) -> None:
    new = record.new_of(one)
    say(f"{one.target}: {len(new)} found in {one.seconds:.0f} s, seed {one.seed}: {headline(one)}")
    for finding in new:
        for line in _lines(one, finding, folder):
            say(visible(line))
    for listed, finding in record.known_of(one):
        say(visible(f"  known: {finding.name}: {listed.reason}"))
    for listed in record.gone_from(one):
        say(visible(f"  known, and gone this time: {listed.finding}: {listed.reason}"))
    for finding in one.unsteady:
        say(visible(f"  {unsteady_line(finding)}"))
    if one.left_out:
        lacking = sorted(set().union(*one.left_out.values()))
        say(f"  the target does not declare {', '.join(lacking)}: explore.md says what was not tried for that")


def _lines(one: Exploration, finding: Breach, folder: Path) -> Sequence[str]:
    path = folder / story_name(one, finding)
    again = f"memstory run {path} --target {one.target}" if finding.written == FAILS else finding.written
    return (f"  {finding.harm}: {finding.title}", f"    {finding.says}", f"    {finding.name}", f"    {again}")


async def _replay(
    record: Record, targets: Mapping[str, TargetFactory], options: Mapping[str, Tree], *, hosted: bool
) -> int:
    failures = 0
    for one in record.explorations:
        if one.target not in targets:
            continue
        for finding in one.findings:
            outcome = await _outcome(targets[one.target], finding, options, hosted=hosted)
            failures += outcome in ("failed", "error")
            say(visible(f"{one.target}: {finding.name}: {outcome}"))
    if not {one.target for one in record.explorations} & targets.keys():
        known = ", ".join(one.target for one in record.explorations)
        raise SetupError(f"the file has explorations of {known} alone")
    return FINDINGS if failures else OK


async def _outcome(factory: TargetFactory, finding: Breach, options: Mapping[str, Tree], *, hosted: bool) -> str:
    story = read_story(finding.story) if finding.story else "it has no story"
    if isinstance(story, str):
        return f"not run: {story}"
    with TemporaryDirectory(prefix="memstory-replay-") as folder:
        with vendors_named(factory.name):
            await factory.start(Path(folder))
        try:
            result = await play(story, factory, Path(folder) / "cases",
                                options=RunOptions(target=options, hosted=hosted))  # fmt: skip
        finally:
            await factory.stop()
    return result.outcome


COMMAND = Command(
    about=(
        "Draw programs of operations from a seed, run them on a memory and compare it with a plain model: what was "
        "acknowledged comes back as it was, what was deleted does not, nobody sees what another stored. A program that "
        "breaks a promise is made as small as it can be and written as a story file. It needs no story of yours, no "
        "model and no key."
    ),
    examples="""
examples:
  memstory explore --target my_module:Memory            one minute
  memstory explore --target fts5 --seconds 10 --seed 7  other programs, the same each time
  memstory explore --target mem0 --target-option embedder=words --known known.toml
  memstory explore --target fts5 --replay reports/explore/explore.json
""",
    exit_codes="exit codes: 0 nothing new was found, 1 something was, 2 the target could not be explored",
    options=_options,
    run=_run,
)
