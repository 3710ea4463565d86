"""A store's texts embedded again, by another model: all of them or none, whenever it is cut off."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memstory_reference.errors import InputError
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.sql_database import Database

LOG = logging.getLogger(__name__)
AT_ONCE = 256
PARTS: Final = "reindexing"
"""The folder, within that of the store, of what is not ready yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTable:
    """Where vectors lie: `select` gives rows whose first column is their number, `update` takes a vector and a number.

    `text` makes of a row what is embedded of it; TypeError or ValueError of one that is damaged.
    """

    select: str
    update: str
    text: Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedFile:
    """Databases whose `about` says by which model they were made: those of this name, which may be a pattern.

    `afterwards` are statements that drop what follows from the vectors of the earlier model.
    """

    name: str
    schema: str
    version: str | None = None
    migrations: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[EmbeddedTable] = ()
    afterwards: Sequence[str] = ()


def text_in(column: str) -> Callable[[Any], str]:
    """Return what reads the text of a column."""

    def text(row: Any) -> str:
        if not isinstance(row[column], str):
            raise TypeError("its text is none")
        return str(row[column])

    return text


async def reindex(folder: Path, files: Sequence[EmbeddedFile], derived: Sequence[str], embedder: Embedder) -> int:
    """Embed every text in `folder` by `embedder`, which owns it from then on; return how many.

    The caller has the folder. What `derived` names is made again from `files` when the store is next opened. A process
    that is killed leaves a store that is reindexed again; one of several files may have been replaced already.

    Raises:
        InputError: there is no store, or one that was never opened by this version.
    """
    parts = folder / PARTS
    shutil.rmtree(parts, ignore_errors=True)
    checked, number = CheckedEmbedder(embedder), 0
    ready: list[tuple[Path, Path]] = []
    try:
        for one in files:
            for file in _files(folder, one.name):
                part = parts / file.name
                _copy(file, part)
                number += await _embed_file(part, one, checked)
                ready.append((part, file))
        if not ready:
            raise InputError(f"{folder}: open it once with the model that made it")
        _replace(ready, [found for name in derived for found in _files(folder, name)])
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return number


async def _embed_file(part: Path, file: EmbeddedFile, embedder: CheckedEmbedder) -> int:
    version = {} if file.version is None else {"schema": file.version}
    database = Database(part, schema=file.schema, about=version, migrations=file.migrations)
    try:
        with database.transaction():
            number = sum([await _embed(database, table, embedder) for table in file.tables])
            for statement in file.afterwards:
                database.execute(statement)
            about = [("model", embedder.model), ("dimension", str(embedder.dimension))]
            database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about[: 2 if embedder.dimension else 1])
        database.forget_log()
    finally:
        database.close()
    return number


async def _embed(database: Database, table: EmbeddedTable, embedder: CheckedEmbedder) -> int:
    numbers, texts = [], []
    for row in database.rows(table.select):
        try:
            texts.append(table.text(row))
            numbers.append(row[0])
        except (TypeError, ValueError) as problem:
            LOG.error("%s: row %s is damaged and left out: %s", database.file.name, row[0], problem)  # noqa: TRY400
    for start in range(0, len(texts), AT_ONCE):
        vectors = await embedder.embed(texts[start : start + AT_ONCE], Purpose.DOCUMENT)
        pairs = zip((one.tobytes() for one in vectors), numbers[start : start + AT_ONCE], strict=True)
        database.executemany(table.update, list(pairs))
    return len(texts)


def _files(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(name))


def _replace(ready: Sequence[tuple[Path, Path]], derived: Sequence[Path]) -> None:
    # First: a copy of the earlier vectors must never stand beside the new ones.
    for one in derived:
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    for part, file in ready:
        part.replace(file)


def _copy(file: Path, part: Path) -> None:
    part.parent.mkdir(mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(part)) as new:
        # What a killed process left in the log belongs to this file, and must not meet the next.
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        old.backup(new)
