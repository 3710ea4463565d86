# noqa: INP001  (a script, no package)
"""Follows pages as a newcomer does: `python docs/follow.py [PAGE …]` types their commands from a plain install.

README's own lines make the environment. Each other page has an empty folder, which is also its home. A page that
types `pip install` gets an environment of its own. `sh` and `console` blocks hold commands; a `console` block also
shows what they print, which must be what they really print (`--write` puts it into the page). Another block whose
paragraph before says "as `NAME`" is a file that the reader saves. Everything else is only read.

A comment directly before a block of commands says what differs from "every command ends with 0":

    <!-- follow: exits 0 1 -->             the exit codes of its commands
    <!-- follow: keeps running at 8765 --> it is a server: the page goes on when that port answers
    <!-- follow: in CI: nox -s NAME -->    it does not run here, for a script in .ci runs that session
    <!-- follow: not here: REASON -->      it does not run here
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
CI: Final = (ROOT / ".ci/run", ROOT / ".ci/nightly")
READER: Final = "/home/you"
"""The home that pages show in the place of the one in which they are followed."""
PATIENCE_SECONDS: Final = 300.0

_BLOCK = re.compile(r"^(?:<!-- follow: ([^\n]*) -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED_AS = re.compile(r"as\s`([\w./-]+)`[^`]*\Z")
_EXITS = re.compile(r"exits((?: \d+)+)")
_SERVES = re.compile(r"keeps running at (\d+)")
_LEFT = re.compile(r"(?:in CI: nox -s (\w+)|not here: \S.*)")
_COMMANDS = {"sh": re.compile(r"^(?!\s*#)(.+?)$", re.MULTILINE), "console": re.compile(r"^\$ (.*)$", re.MULTILINE)}
_TIMES = ((re.compile(r"\bin \d+\.\d+s\b"), "in 0.10s"), (re.compile(r"\bin \d+\.\d+ s\b"), "in 0.00 s"),
          (re.compile(r"\b\d+ ms\b"), "0 ms"))  # fmt: skip
_PORTS = threading.Lock()


@dataclass(kw_only=True)
class Shell:
    """Runs commands one by one, as a terminal does: folder and exported variables stay from one to the next."""

    folder: Path
    home: Path
    settings: dict[str, str]

    def __post_init__(self) -> None:
        self._state = self.home.with_name(f"{self.home.name}.state")
        self._state.write_text(f"cd {shlex.quote(str(self.folder))}\n", "utf-8")

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Return exit code and output of a command."""
        state = shlex.quote(str(self._state))
        after = f'code=$?; {{ export -p; printf "cd %q\\n" "$PWD"; }} > {state}; exit $code'
        process = subprocess.Popen(  # noqa: S603
            ["bash", "-c", f". {state}\n{command}\n{after}"],  # noqa: S607  (the commands of our own pages)
            cwd=self.folder, env=self.settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"it did not end within {PATIENCE_SECONDS:.0f} s"
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def serve(self, command: str, port: int, until: ExitStack) -> bool:
        """Start a server that is ended with `until`; return whether its port came to answer."""
        server = subprocess.Popen(  # noqa: S603
            ["bash", "-c", f". {shlex.quote(str(self._state))}\n{command}"],  # noqa: S607
            cwd=self.folder, env=self.settings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        until.callback(_end, server)
        last = time.monotonic() + 60
        while time.monotonic() < last and server.poll() is None:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return True
            time.sleep(0.05)
        return False

    def save(self, name: str, text: str) -> None:
        """Save a file in the folder in which the terminal is."""
        path = Path(self.run("pwd").stdout.strip(), name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _end(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
    server.wait(timeout=30)


@dataclass(kw_only=True)
class Walk:
    """What happens to a page: the commands that ran, those left out with the reason, what went wrong, the new text."""

    name: str
    shell: Shell
    sessions: str
    """The scripts that run in CI."""
    ran: int = 0
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    text: str = ""
    servers: ExitStack = field(default_factory=ExitStack)

    def follow(self, page: str) -> None:
        """Save the files of a page, and type its commands."""
        pieces, end, marks = [], 0, 0
        with self.servers:
            for found in _BLOCK.finditer(page):
                mark, kind, body = found.groups()
                before = page[end : found.start(2) - 3]
                place = f"{self.name}:{page.count(chr(10), 0, found.start(2)) + 1}"
                marks += mark is not None
                if kind in _COMMANDS:
                    body = self._block(place, kind, body, mark or "exits 0")
                elif mark is not None:
                    self.wrong.append(f"{place}: a comment 'follow:' stands before a block without commands")
                elif saved := _SAVED_AS.search(before):
                    self.shell.save(saved[1], body)
                pieces += [before, f"```{kind}\n{body}```"]
                end = found.end()
        if page.count("<!-- follow") != marks:
            self.wrong.append(f"{self.name}: a comment 'follow' is misspelt, or does not stand directly before a block")
        self.text = "".join([*pieces, page[end:]])

    def _block(self, place: str, kind: str, body: str, mark: str) -> str:
        """Do what the comment of a block says; return the block with what it really prints."""
        commands = _COMMANDS[kind].findall(body.replace("\\\n", ""))
        if exits := _EXITS.fullmatch(mark):
            printed = self._type(place, commands, [int(code) for code in exits[1].split()])
            if kind == "sh" or printed is None:
                return body
            if printed != body:
                self.wrong.append(f"{place}: it really prints (docs/follow.py --write puts it in):\n{printed}")
            return printed
        if served := _SERVES.fullmatch(mark):
            self.ran += len(commands)
            if not self.shell.serve("\n".join(commands), int(served[1]), self.servers):
                self.wrong.append(f"{place}: its port {served[1]} does not answer")
        elif left := _LEFT.fullmatch(mark):
            self.left += [f"{place}: {mark} ({len(commands)} {'command' if len(commands) == 1 else 'commands'})"]
            if left[1] and not re.search(rf"\b{left[1]}\b", self.sessions):
                self.wrong.append(f"{place}: no script in .ci runs 'nox -s {left[1]}'")
        else:
            self.wrong.append(f"{place}: 'follow: {mark}' says nothing that is known, or gives no reason")
        return body

    def _type(self, place: str, commands: list[str], exits: list[int]) -> str | None:
        """Run commands up to the first that ends with another code than it should; return what they print."""
        if len(exits) == 1:
            exits *= len(commands)
        if len(exits) != len(commands):
            self.wrong.append(f"{place}: {len(commands)} commands, but {len(exits)} exit codes")
            return None
        printed = []
        for command, code in zip(commands, exits, strict=True):
            done = self.shell.run(command)
            self.ran += 1
            if done.returncode != code:
                said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
                self.wrong.append(f"{place}: ended with {done.returncode} instead of {code}: {command}\n{said}")
                return None
            printed.append(f"$ {command}\n{_shown(done.stdout, self.shell.home)}")
        return "".join(printed)


def _shown(text: str, home: Path) -> str:
    text = text.replace(str(home), READER)
    for pattern, same in _TIMES:
        text = pattern.sub(same, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def settings(home: Path, *places: Path) -> dict[str, str]:
    """Return the environment of a newcomer: this one, without what started this script, and with `places` first."""
    strange = ("VIRTUAL_ENV", "PYTHON", "PYTEST_", "NOX", "MEMSTORY_", "OPENAI_", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    fixed = {"HOME": str(home), "PATH": path, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "PS1": ""}
    # The settings of pip and uv are those of this machine: they say where packages come from.
    own = {"XDG_CONFIG_HOME": str(Path.home() / ".config"), "UV_CACHE_DIR": str(Path.home() / ".cache/uv")}
    return {**own, **kept, **fixed, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


class Machine:
    """A clone, and the environments that pages are followed in."""

    def __init__(self, folder: Path) -> None:
        """Copy what git knows of this clone, changes included, below `folder`."""
        self._folder = folder
        self.clone = folder / "clone"
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True, encoding="utf-8").stdout  # noqa: S603
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.clone / name)
        self._uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))

    def walk(self, page: Path) -> Walk:
        """Follow a page in its own folder; README in the clone, where it makes the environment of the others."""
        text, name = page.read_text("utf-8"), page.relative_to(ROOT).as_posix()
        home = self._folder / "homes" / name.replace("/", "-")
        home.mkdir(parents=True)
        if name == "README.md":
            place, added = self.clone, {"PIP_CONSTRAINT": str(self.clone / "constraints.txt")}
            shell = Shell(folder=place, home=home, settings=settings(home) | added)
        else:
            own = re.search(r"^(?:\$ )?pip install", text, re.MULTILINE)
            bin_folder = self._own_environment(home) if own else self.clone / ".venv/bin"
            shell = Shell(folder=home, home=home, settings=settings(home, bin_folder))
        started = time.monotonic()
        with _PORTS if _SERVES.search(text) else threading.Lock():
            walk = Walk(name=name, shell=shell, sessions="".join(script.read_text("utf-8") for script in CI))
            walk.follow(text)
        tell(f"{name}: {walk.ran} ran in {time.monotonic() - started:.0f} s")
        return walk

    def _own_environment(self, home: Path) -> Path:
        """Make an environment with memstory alone, whose `pip` installs from the clone and from uv's cache."""
        place = home / ".environment"
        place.mkdir()
        uv = [self._uv, "--quiet"]
        subprocess.run([*uv, "venv", "--python", sys.executable, str(place / "venv")], check=True)  # noqa: S603
        bin_folder = place / "venv/bin"
        # Of the pins, these alone name the heavy libraries too.
        pins = self.clone / "tests/backends/constraints.txt"
        install = [*uv, "pip", "install", "--python", str(bin_folder / "python"), "-c", str(pins)]
        subprocess.run([*install, "."], cwd=self.clone, check=True)  # noqa: S603
        pip = bin_folder / "pip"
        pip.write_text(f'#!/bin/sh\ncd {shlex.quote(str(self.clone))} && shift && exec {shlex.join(install)} "$@"\n')
        pip.chmod(0o755)
        return bin_folder


def pages() -> list[Path]:
    """Return README and the pages of docs, those first that take long."""
    found = sorted((ROOT / "docs").rglob("*.md"), key=lambda page: -page.read_text("utf-8").count("```sh"))
    return [page for page in found if re.search(r"^```(sh|console)$", page.read_text("utf-8"), re.MULTILINE)]


def tell(text: str) -> None:
    """Print a line at once, also while pages are followed."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Follow the pages, two at a time, and print what ran, what did not, and what went wrong."""
    parser = argparse.ArgumentParser(description="Follow the pages word by word, from a plain install.")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: README and all pages of docs")
    parser.add_argument("--write", action="store_true", help="put what the commands print into the pages")
    given = parser.parse_args()
    others = [page.resolve() for page in given.pages if page.name != "README.md"] if given.pages else pages()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as workers:
        machine = Machine(Path(folder).resolve())
        walks = [machine.walk(ROOT / "README.md")]
        if not walks[0].wrong:
            walks += workers.map(machine.walk, others)
    for walk in walks if given.write else ():
        (ROOT / walk.name).write_text(walk.text, "utf-8")
    left = [line for walk in walks for line in walk.left]
    tell(f"\nfollowed {len(walks)} pages: {sum(walk.ran for walk in walks)} commands ran; not run here:")
    tell("\n".join(f"  {line}" for line in left) or "  nothing")
    wrong = [line for walk in walks for line in walk.wrong]
    tell("".join(f"\nWRONG: {line}" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
