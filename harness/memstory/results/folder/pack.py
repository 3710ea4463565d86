"""A run in one file that somebody else can judge again: results, recordings, stories, and a hash of each."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final
from urllib.parse import quote

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.results.folder.recordings_file import RECORDINGS_NAME, parse_recordings, with_steps
from memstory.results.folder.results_file import MOST_UNPACKED, RESULTS_NAME, parse_results, results_text
from memstory.results.folder.whole_files import write_whole
from memstory.results.runs import Run

PACK_SCHEMA: Final = "memstory.pack/1"
LIST_NAME: Final = "pack.json"
STORIES_FOLDER: Final = "stories"
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a pack: the same run makes the same pack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """What a pack holds; `digest` is the SHA-256 of the file.

    `stories` are the texts of its story files by name, and by `rows_name` those of the files of rows that they name.
    """

    run: Run
    stories: Mapping[str, str]
    digest: str


def rows_name(story_file: str, rows: str) -> str:
    """Return the name in a pack of the file that a story of `story_file` names `rows`.

    >>> rows_name("a.story.yaml", "../rows.jsonl")
    'a.story.yaml.rows/..%2Frows.jsonl'
    """
    return f"{story_file}.rows/{quote(rows, safe='')}"


def write_pack(path: Path, run: Run, recordings: bytes, stories: Mapping[str, str]) -> None:
    """Write a run with what judging it again needs; SetupError where it cannot be written."""
    files = {
        RESULTS_NAME: results_text(run).encode("utf-8", "backslashreplace"),
        RECORDINGS_NAME: recordings,
        **{f"{STORIES_FOLDER}/{name}": text.encode() for name, text in stories.items()},
    }
    listed = {"schema": PACK_SCHEMA, "files": {name: sha256(content).hexdigest() for name, content in files.items()}}
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, one in {LIST_NAME: json.dumps(listed, indent=1).encode(), **files}.items():
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), one, zipfile.ZIP_DEFLATED)
    write_whole(path, content.getvalue())


def read_pack(path: Path) -> Pack:
    """Return what a pack holds, every file of it as it was packed.

    Raises:
        SetupError: it is not there, is no pack, holds more than a pack may, or a file of it was changed.
    """
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if sum(one.file_size for one in archive.infolist()) > MOST_UNPACKED:
                raise SetupError(
                    f"{path} holds more than {MOST_UNPACKED:,} bytes when it is unpacked: no run has so much"
                )
            files = {name: archive.read(name) for name in archive.namelist()}
        listed: Tree = json.loads(files[LIST_NAME])
        hashes: Mapping[str, str] = listed["files"] if listed["schema"] == PACK_SCHEMA else {}
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, NotImplementedError) as error:
        raise SetupError(f"{path} is no pack of a run ({error}): 'memstory submit RUN' makes one") from error
    own = {name: one for name, one in files.items() if name != LIST_NAME}
    changed = sorted(name for name in {*own, *hashes} if sha256(own.get(name, b"")).hexdigest() != hashes.get(name))
    if changed or RESULTS_NAME not in own or RECORDINGS_NAME not in own:
        raise SetupError(f"{path} is not as it was packed: {', '.join(changed) or 'a file'} changed or is missing")
    run = parse_results(own[RESULTS_NAME], path / RESULTS_NAME)
    run = with_steps(run, parse_recordings(own[RECORDINGS_NAME], path / RECORDINGS_NAME))
    stories = {
        name.removeprefix(f"{STORIES_FOLDER}/"): one.decode("utf-8", "replace")
        for name, one in own.items()
        if name.startswith(f"{STORIES_FOLDER}/")
    }
    return Pack(run=run, stories=stories, digest=sha256(content).hexdigest())
