"""`memstory data`: the sets of conversations that are known by name: which are here, and how to get the others."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Final

from memstory.commands.command import FINDINGS, OK, Command, add_json
from memstory.commands.output import say, say_aside, say_json, table
from memstory.contract.errors import MemstoryError, SetupError
from memstory.data_sets import SETS, data_set, set_story
from memstory.datasets import (
    SetCopy,
    add_set,
    checked_copy,
    fetch_set,
    place_of,
    read_set,
    set_copy,
    sets_folder,
)

_PAUSE_SECONDS: Final = 0.5
_MEGABYTE: Final = 1_000_000


def _options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="get|add|list", required=True)
    get = what.add_parser("get", help="fetch a set from its authors' place, and check its hash")
    get.add_argument("name", metavar="NAME", help=", ".join(SETS))
    get.add_argument("--yes", action="store_true", help="do not ask")
    get.add_argument("--from", dest="place", metavar="URL", help="fetch the same files from below this address")
    add = what.add_parser("add", help="take a copy that you have, of any version")
    add.add_argument("name", metavar="NAME", help=", ".join(SETS))
    add.add_argument("path", type=Path, metavar="PATH", help="its file, or for BEAM the folder of its chats")
    listed = what.add_parser("list", help="say which sets there are, and which are here")
    listed.add_argument("--check", action="store_true", help="read every file that is here, and compare its hash")
    add_json(listed)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.what == "list":
        return _list(check=chosen.check, as_json=chosen.json)
    if chosen.what == "add":
        return _show_copy(add_set(chosen.name, chosen.path, check=read_set))
    wanted = data_set(chosen.name)
    place = chosen.place or wanted.address
    say_aside(f"{chosen.name}: {wanted.title}: {wanted.about}")
    say_aside(f"licence: {wanted.licence}. About {wanted.megabytes:,} MB from {place}")
    if not (chosen.yes or _agrees()):
        say_aside("Nothing was fetched.")
        return FINDINGS
    return _show_copy(fetch_set(chosen.name, tell=_Meter(), address=chosen.place, check=read_set))


def _agrees() -> bool:
    if not sys.stdin.isatty():
        raise SetupError("nobody can be asked here whether the licence suits: add --yes if it does")
    sys.stderr.write("Fetch it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


class _Meter:
    """Says on a terminal how much has come."""

    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, file: str, got: int) -> None:
        if sys.stderr.isatty() and monotonic() >= self._due:
            self._due = monotonic() + _PAUSE_SECONDS
            sys.stderr.write(f"\r\x1b[K  {file}: {got / _MEGABYTE:,.1f} MB")
            sys.stderr.flush()


def _show_copy(kept: SetCopy) -> int:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    say(f"{kept}, in {kept.folder}")
    if set_story(kept.name):
        say(f"Now: memstory run {kept.name} --target MINE")
    return OK


def _list(*, check: bool, as_json: bool) -> int:
    found = [(name, *_state(name, check=check)) for name in SETS]
    if as_json:
        say_json([
            {"name": name, "about": SETS[name].about, "licence": SETS[name].licence, "here": state, "wrong": is_wrong}
            for name, state, is_wrong in found
        ])  # fmt: skip
    else:
        here = {name: state or f"no, {SETS[name].megabytes:,} MB" for name, state, _ in found}
        rows = [[name, f"{one.title}: {one.about}", one.licence, here[name]] for name, one in SETS.items()]
        say(table(["set", "about", "licence", "here"], rows, [None, 60, 26, 40]))
        say(f"\nkept in {sets_folder(os.environ)}; 'memstory data get NAME' fetches one")
        for _, state, is_wrong in found:
            if is_wrong:
                say_aside(state or "")
    return FINDINGS if any(is_wrong for *_, is_wrong in found) else OK


def _state(name: str, *, check: bool) -> tuple[str | None, bool]:
    """Return what is here of a set, None for nothing, and whether something is wrong with it."""
    try:
        kept = checked_copy(name) if check else set_copy(name)
        if kept:
            return str(kept).partition(": ")[2], False
        return f"at {place_of(name).find(None, Path.cwd(), os.environ)}", False
    except SetupError as error:
        return str(error), True
    except MemstoryError:
        return None, False


COMMAND = Command(
    about=(
        "The sets of conversations that 'memstory run NAME' measures on. None comes with memstory: 'get' fetches one "
        "from its authors' place, after it has told you licence and size, and checks it by its hash. Where none is "
        "known, the hash of the first copy is noted and compared from then on, and reports say 'unpinned'."
    ),
    examples="""
examples:
  memstory data list                               what there is, and what is here
  memstory data get locomo                         3 MB, asks once
  memstory data get longmemeval --yes              277 MB, without asking
  memstory data add beam ~/BEAM/chats/100K         a copy that you have
  memstory run longmemeval --target mine           then measure
""",
    exit_codes=(
        "exit codes: 0 fine, 1 you said no, or a kept file was changed, 2 it cannot be had; the message says why"
    ),
    options=_options,
    run=_run,
)
