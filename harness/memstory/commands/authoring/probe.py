"""`memstory probe`: what a memory can do, found out by trying it, and the declaration to write."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Final

from memstory.commands.command import FINDINGS, OK, Command, add_json, add_target_options
from memstory.commands.output import is_watched, say, say_aside, say_json, screen_width, table
from memstory.commands.target_list import load_typed
from memstory.conformance.probe import BASICS, ProbedCapability, probe
from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import TargetFactory, Tree
from memstory.contract.texts import did_you_mean
from memstory.language.capabilities import meaning
from memstory.reporting.document import visible
from memstory.targets.discovery import (
    is_table_spec,
    object_within,
    read_tables,
    vendors_named,
)
from memstory.targets.objects.target import DECLARATION

_SECONDS: Final = 300.0
_WIDTH: Final = 100
_MISLEADING: Final = (
    "What a method is for, and what its parameters are given, follows from their names: where one misleads, as a "
    "'scope' that is no user, test a subclass with methods that are named otherwise."
)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="the memory: module:Class, or a name as for `memstory run`")
    add_target_options(parser)
    parser.add_argument("--seconds", type=float, default=_SECONDS, metavar="N",
                        help=f"for how long to try (default: {_SECONDS:g})")  # fmt: skip
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    options = dict(chosen.target_option)
    broken = False
    for name, factory in load_typed([chosen.target]).items():
        _check(name, factory, options)
        if is_watched():
            say_aside(f"memstory: trying what {name} can do, for {chosen.seconds:g} s at most")
        with vendors_named(name):
            found = probe(factory, options, seconds=chosen.seconds)
        broken = broken or any(one.is_promised and one.holds is False for one in found)
        if chosen.json:
            say_json([{"target": name, "capability": one.capability, "promised": one.is_promised, "holds": one.holds,
                       "why": one.why} for one in found])  # fmt: skip
        else:
            say(visible("\n\n".join(_sections(factory, options, found))))
    return FINDINGS if broken else OK


def _check(name: str, factory: TargetFactory, options: Mapping[str, Tree]) -> None:
    known = [word.removeprefix("option.") for word in factory.capabilities({}) if word.startswith("option.")]
    for option in options:
        if option not in known:
            has = f"Known: {', '.join(sorted(known))}." if known else "It has none."
            raise SetupError(f"{name} has no option '{option}'.{did_you_mean(option, known)} {has}")


def _sections(factory: TargetFactory, options: Mapping[str, Tree], found: Sequence[ProbedCapability]) -> Iterator[str]:
    one = object_within(factory)
    if one is not None:
        yield fill(one.use(options), screen_width())
    if any(one.capability in BASICS and one.holds is False for one in found):
        found = [one for one in found if one.is_promised or one.holds is not None]
    by = "its signatures promise" if one is not None and one.declared is None else "it declares"
    for title, why, rows in (
        (f"What {by}, and holds", "meaning", [one for one in found if one.is_promised and one.holds]),
        (f"What {by}, and DOES NOT HOLD", "why", [one for one in found if one.is_promised and one.holds is False]),
        (f"What {by}, and no test can tell", "why", [one for one in found if one.is_promised and one.holds is None]),
        ("What holds beside that", "meaning", [one for one in found if not one.is_promised and one.holds]),
        ("What was tried beside that, and does not hold", "why", [
            one for one in found if not one.is_promised and not one.holds and not _is_absent(one)]),
    ):  # fmt: skip
        cells = [[one.capability, " ".join((one.why or meaning(one.capability)).split())] for one in rows]
        yield from [f"{title}:\n\n{table(['capability', why], cells, [None, _WIDTH])}"] if rows else []
    absent = [one.capability for one in found if not one.is_promised and _is_absent(one)]
    if absent:
        yield fill(f"What it has nothing for: {', '.join(absent)}.", screen_width(), break_on_hyphens=False)
    broken = [one.capability for one in found if one.is_promised and one.holds is False]
    basics = [word for word in broken if word in BASICS]
    if basics:
        yield f"Make {' and '.join(basics)} hold first. What needs this was not tried."
        if one is not None:
            yield fill(_MISLEADING, screen_width())
        return
    if broken:
        yield fill(
            f"{', '.join(broken)}: a promise that does not hold fails its stories, each with its harm. The declaration "
            "below makes them unsupported instead: write it only if the memory is not meant to do this.",
            screen_width(),
        )
    yield "\n    ".join(["As a declaration, this is:", *_declaration(factory, found)])


def _is_absent(one: ProbedCapability) -> bool:
    """Whether all that is known of a capability is that there is no operation for it."""
    operation, _, _ = one.capability.partition(".")
    return one.holds is False and one.why in (str(NotSupported(one.capability)), str(NotSupported(operation)))


def _declaration(factory: TargetFactory, found: Sequence[ProbedCapability]) -> Sequence[str]:
    """Return what to write for just what holds, with what nothing but stories can tell."""
    lost = {one.capability for one in found if one.holds is False}
    holds = {one.capability for one in found if one.holds or (one.is_promised and one.holds is None)}
    if object_within(factory):
        return [f"{DECLARATION} = {json.dumps(sorted(holds))}  # in the class"]
    tables, _, name = (factory.spec or "").rpartition("#")
    written = read_tables(Path(tables))[name] if is_table_spec(factory.spec or "") else {"target": factory.spec}
    if "target" in written:
        return [f"return frozenset({json.dumps(sorted(holds))})  # in 'capabilities' of the factory"]
    promised = {one.capability for one in found if one.is_promised}
    more = {one.capability for one in found if one.holds and not one.is_promised} | _words(written.get("capabilities"))
    less = lost & promised
    keys = {"capabilities": more - less, "lacks": less | _words(written.get("lacks"))}
    return [f"{key} = {json.dumps(sorted(words))}" for key, words in keys.items() if words] or ["nothing to write"]


def _words(tree: Tree) -> set[str]:
    return set(map(str, tree)) if isinstance(tree, list) else set()


COMMAND = Command(
    about=(
        "Find out what a memory can do by trying it. Each capability has a test, which is the one of memstory's suite "
        "for adapters (memstory.conformance): it adds a few texts for throw-away users, and looks at what comes back. "
        "What the memory promises is tried: the methods and parameters of a class, the operations of a table, "
        "the words that an adapter declares. So is what it does not promise but may do all the same. Printed is what "
        "holds, what does not and why, and the declaration to write.\n"
        "You need no declaration for `memstory run`: a class or a table promises by its form, and a run probes what "
        "a story needs beside that."
    ),
    examples="""
examples:
  memstory probe my_memory:Memory                         a class with add and search, as it is
  memstory probe notes                                    a table of memstory.toml: REST or MCP
  memstory probe my_memory:Memory --target-option path=/tmp/shared.db
  memstory probe my_memory:MyFactory --json               for programs
""",
    exit_codes=(
        "exit codes: 0 all that is promised holds, as far as a test can tell, 1 a promise does not hold, 2 the memory "
        "cannot be had"
    ),
    options=_options,
    run=_run,
)
