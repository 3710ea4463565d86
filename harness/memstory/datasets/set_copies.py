"""The user's own copies of the sets: fetched or added into the cache, and the hashes by which they stay the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Final, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import urlopen

from memstory.contract.cache_folder import cache_folder
from memstory.contract.errors import SetupError
from memstory.data_sets import SETS, DataSet, data_set
from memstory.results.folder.whole_files import write_text, writing

NOTE_NAME: Final = "set.json"
_CHUNK: Final = 1 << 20
_SECONDS: Final = 60.0
_GONE: Final = 404

Tell = Callable[[str, int], None]
"""`tell(file, bytes)`, called as a file arrives."""

Check = Callable[[str, Path], None]
"""`check(name, path)`, which raises SetupError for what is not of the set's form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCopy:
    """A set that is here: its folder, and what was written down when it came. `pin` says what vouches for it."""

    name: str
    folder: Path
    hashes: Mapping[str, str]
    pin: Literal["hash", "commit", "unpinned"]
    origin: str

    @property
    def path(self) -> Path:
        """What a reader opens: the file of the set, or its folder."""
        return self.folder / (SETS[self.name].file or "")

    @property
    def digest(self) -> str:
        """One SHA-256 for all files: that of the only one, or of the list of them."""
        if len(self.hashes) == 1:
            return next(iter(self.hashes.values()))
        return sha256("".join(f"{name} {one}\n" for name, one in sorted(self.hashes.items())).encode()).hexdigest()

    def __str__(self) -> str:
        how = {"hash": "pinned by its hash", "commit": "pinned by the authors' commit", "unpinned": "unpinned"}
        count, whole = len(self.hashes), len(SETS[self.name].files)
        part = "" if count == whole else f", {count} of {whole} files"
        return f"{self.name}: {how[self.pin]}, SHA-256 {self.digest[:12]}{part}"


def sets_folder(environ: Mapping[str, str]) -> Path:
    """Return where the sets are kept."""
    return cache_folder(environ) / "data"


def set_copy(name: str, environ: Mapping[str, str] = os.environ) -> SetCopy | None:
    """Return the copy that is kept, None where there is none; SetupError where what is written of it is damaged."""
    folder = sets_folder(environ) / name
    try:
        noted = json.loads((folder / NOTE_NAME).read_text("utf-8"))
        return SetCopy(name=name, folder=folder, hashes=noted["hashes"], pin=noted["pin"], origin=noted["origin"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{folder} is damaged ({_reason(error)}): {_again(name)}") from error


def checked_copy(name: str, environ: Mapping[str, str] = os.environ) -> SetCopy | None:
    """Return the copy that is kept, every file of it as it came; SetupError for one that has changed since."""
    kept = set_copy(name, environ)
    for file, wanted in kept.hashes.items() if kept else ():
        path = kept.folder / file if kept else Path(file)
        try:
            found = hash_of(path)
        except OSError as error:
            raise SetupError(f"{path} cannot be read: {_reason(error)}. {_again(name)}") from error
        if found != wanted:
            raise SetupError(
                f"{path} has changed since it came (SHA-256 {found[:12]}, was {wanted[:12]}): {_again(name)}"
            )
    return kept


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    found = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def fetch_set(
    name: str, *, tell: Tell, check: Check, environ: Mapping[str, str] = os.environ, address: str | None = None
) -> SetCopy:
    """Download a set from its own place, or from `address`, which has the same files; return the kept copy.

    A file whose hash is known, or was noted when the set first came, must have that hash again.

    Raises:
        SetupError: the place cannot be reached or does not have it, another version is there, what came is not of the
            set's form, or the disk is full.
    """
    wanted = data_set(name)
    known = set_copy(name, environ) if (sets_folder(environ) / name / NOTE_NAME).is_file() else None
    noted = known.hashes if known and not known.origin.startswith("file:") else {}
    place = address or wanted.address
    with _new_folder(sets_folder(environ) / name) as folder:
        hashes = {}
        for names in wanted.files:
            file, found = _fetch_first(place, names, folder, tell)
            pinned = wanted.hashes.get(file, noted.get(file))
            if pinned is not None and found != pinned:
                since = "its known SHA-256" if file in wanted.hashes else "what came the first time"
                raise SetupError(
                    f"{urljoin(place, file)} is another version: SHA-256 {found[:12]}, not {pinned[:12]}, {since}. "
                    f"Nothing was kept; 'memstory data add {name} FILE' takes a copy of any version, as unpinned"
                )
            hashes[file] = found
        check(name, folder / (wanted.file or ""))
        _note(name, folder, hashes, place, is_at_commit=wanted.is_at_commit and address is None)
    return _new_copy(name, environ)


def add_set(name: str, path: Path, *, check: Check, environ: Mapping[str, str] = os.environ) -> SetCopy:
    """Copy what the user has of a set, a file or the folder of its chats, into the cache; return the kept copy.

    Raises:
        SetupError: it is not there, is not of the set's form, cannot be read, or the disk is full.
    """
    wanted = data_set(name)
    is_there = path.is_file() if wanted.file else path.is_dir()
    if not is_there:
        kind = "the file" if wanted.file else "the folder that holds its numbered folders, such as chats/100K,"
        raise SetupError(f"{path} is not {kind} of {name}")
    check(name, path)
    with _new_folder(sets_folder(environ) / name) as folder:
        hashes = {}
        for source, file in _files_of(wanted, path):
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(source, target)
            except OSError as error:
                raise SetupError(f"{source} cannot be copied to {target}: {_reason(error)}") from error
            hashes[file] = hash_of(target)
        _note(name, folder, hashes, path.absolute().as_uri(), is_at_commit=False)
    return _new_copy(name, environ)


def _files_of(wanted: DataSet, path: Path) -> Iterator[tuple[Path, str]]:
    if wanted.file:
        yield path, wanted.file
        return
    for names in wanted.files:
        found = next((name for name in names if (path / name).is_file()), None)
        if found:
            yield path / found, found


def pin_of(wanted: DataSet, hashes: Mapping[str, str], *, is_at_commit: bool) -> Literal["hash", "commit", "unpinned"]:
    """Return what vouches for files with these hashes."""
    if wanted.hashes and all(wanted.hashes.get(name) == found for name, found in hashes.items()):
        return "hash"
    return "commit" if is_at_commit else "unpinned"


def _note(name: str, folder: Path, hashes: Mapping[str, str], origin: str, *, is_at_commit: bool) -> None:
    pin = pin_of(SETS[name], hashes, is_at_commit=is_at_commit)
    write_text(folder / NOTE_NAME, json.dumps({"hashes": hashes, "pin": pin, "origin": origin}, indent=1))


def _new_copy(name: str, environ: Mapping[str, str]) -> SetCopy:
    kept = set_copy(name, environ)
    if kept is None:
        raise SetupError(f"{sets_folder(environ) / name} is gone again: another process removed it")
    return kept


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder beside `folder` that takes its place when all went well, and else is gone."""
    new = folder.with_name(f"{folder.name}.new")
    with writing(folder):
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        try:
            yield new
            shutil.rmtree(folder, ignore_errors=True)
            new.replace(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _fetch_first(place: str, names: Sequence[str], folder: Path, tell: Tell) -> tuple[str, str]:
    """Download the first of `names` that the place has; return it with its hash."""
    for name in names:
        url = urljoin(place, name)
        try:
            return name, _download(url, folder / name, partial(tell, name))
        except HTTPError as error:
            if error.code == _GONE and name != names[-1]:
                continue
            raise SetupError(f"{url} answers {error.code} {error.reason}: {_otherwise()}") from error
        except URLError as error:
            raise SetupError(f"{url} cannot be reached ({error.reason}): {_otherwise()}") from error
        except (HTTPException, TimeoutError, ConnectionError) as error:
            raise SetupError(f"{url} broke off ({_reason(error)}): type it again, or {_otherwise()}") from error
    raise SetupError(f"{place} has none of {', '.join(names)}")


def _download(url: str, target: Path, tell: Callable[[int], None]) -> str:
    found, got = sha256(), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with urlopen(url, timeout=_SECONDS) as reply, target.open("wb") as file:  # noqa: S310  (https, or what was typed)
        while chunk := reply.read(_CHUNK):
            file.write(chunk)
            found.update(chunk)
            got += len(chunk)
            tell(got)
        promised = reply.headers.get("Content-Length")
    if promised is not None and int(promised) != got:
        raise HTTPException(f"{got:,} of {int(promised):,} bytes came")
    return found.hexdigest()


def _otherwise() -> str:
    return "fetch it where there is a network, and name your copy: 'memstory data add NAME FILE'"


def _again(name: str) -> str:
    return f"'memstory data get {name}' fetches it again"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
