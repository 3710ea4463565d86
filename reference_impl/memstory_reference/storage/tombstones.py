"""What was forgotten for good, by digests: enough to recognise it, too little to read it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import UNSTORED, InputError
from memstory_reference.storage.sql_database import Database
from memstory_reference.text.secret_guard import Guard
from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import fold, squeeze

FILE: Final = "forgotten.sqlite3"
REASON: Final = "it was forgotten for good"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS salt (value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS forgotten (owner TEXT NOT NULL, mark BLOB NOT NULL, PRIMARY KEY (owner, mark)) WITHOUT ROWID;
"""
_WORD = re.compile(r"[^\W_]+")
_SPEAKER = re.compile(r"^\s*[\w ]{1,40}:\s")
_AMOUNT = re.compile(r"[\d.,:/%]*[.,:/%][\d.,:/%]*|\d{4}(?:-\d\d){1,2}")
_LEAST_WORDS, _LEAST_SIGNS = 3, 5
_SALT_BYTES = 16


class Tombstones:
    """The marks of each owner, in a file that is made when the first is needed; without a file they go with the object.

    A digest keeps a text unread, not secret: who has the file can try short texts until one fits.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._db: Database | None = None
        self._salt = secrets.token_bytes(_SALT_BYTES)
        self._marks: dict[str, set[bytes]] = {}
        if file is not None and file.exists():
            self._open(file)

    def bury(self, owner: str, texts: Iterable[str]) -> None:
        """Keep `texts` away from now on: each sentence of them, and each identifier."""
        self._write(owner, {self._digest(one) for text in texts for one in _statements(text, is_buried=True)})

    def reason(self, owner: str, text: str) -> str | None:
        """Return why a text must not be kept: it tells again what this owner had forgotten for good."""
        marks = self._marks.get(owner)
        is_known = marks is not None and any(self._digest(one) in marks for one in _statements(text))
        return REASON if is_known else None

    def guard(self, owner: str, guard: Guard | None) -> Guard:
        """Return `guard` with what must not be kept for this owner beside it."""
        return lambda text: (guard and guard(text)) or self.reason(owner, text)

    def refuse(self, owner: str, *texts: str) -> None:
        """Raise InputError if one of `texts` must not be kept; its message holds no word of them."""
        for text in texts:
            if reason := self.reason(owner, text):
                raise InputError(f"{UNSTORED}{reason}")

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._db is not None:
            self._db.close()

    def _write(self, owner: str, marks: set[bytes]) -> None:
        if self._file is not None and self._db is None:
            self._open(self._file)
        if self._db is not None:
            self._db.executemany("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", [(owner, one) for one in marks])
        self._marks.setdefault(owner, set()).update(marks)

    def _open(self, file: Path) -> None:
        self._db = Database(file, schema=_SCHEMA, about={"schema": "1"})
        marks = self._db.rows("SELECT owner, mark FROM forgotten")
        if not marks:
            self._db.execute("INSERT INTO salt SELECT ? WHERE NOT EXISTS (SELECT 1 FROM salt)", (self._salt,))
        salts = [row["value"] for row in self._db.rows("SELECT value FROM salt LIMIT 1")]
        if not salts or not isinstance(salts[0], bytes) or len(salts[0]) != _SALT_BYTES:
            self._db.close()
            raise UnavailableError(
                f"{file} is damaged: what was forgotten for good would not be known again; restore a backup, "
                "or use another folder"
            )
        self._salt = salts[0]
        for owner, mark in marks:
            self._marks.setdefault(owner, set()).add(mark)

    def _digest(self, told: str) -> bytes:
        return blake2b(told.encode(), digest_size=16, key=self._salt).digest()


class NoTombstones(Tombstones):
    """Of a memory without a folder: in a server others write to it, and what one kept away they would let in."""

    def bury(self, owner: str, texts: Iterable[str]) -> None:
        """Raise InputError: what is forgotten here may come back."""
        raise InputError("this memory has no folder, so it cannot forget permanently: delete without 'durable'")


def _statements(text: str, *, is_buried: bool = False) -> Iterator[str]:
    """Yield what a text tells: itself, its sentences (of what is buried: those that say something), its identifiers."""
    yield _plain(text)
    for line in (_SPEAKER.sub("", line) for line in text.splitlines()):
        for sentence in sentences(line):
            if not is_buried or len(_WORD.findall(sentence)) >= _LEAST_WORDS:
                yield _plain(sentence)
    yield from (f"#{squeeze(token)}" for token in text.split() if _is_identifier(token.strip(".,;:!?()\"'")))


def _plain(text: str) -> str:
    # What has no words is itself: two rows of signs are not the same.
    return " ".join(_WORD.findall(fold(text).casefold())) or text.strip()


def _is_identifier(token: str) -> bool:
    """Say whether a word with digits names one thing: no date, amount or time."""
    has_digit = any(map(str.isdigit, token))
    return has_digit and len(squeeze(token)) >= _LEAST_SIGNS and _AMOUNT.fullmatch(token) is None
