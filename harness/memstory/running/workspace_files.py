"""What lies in a case's folder: the harness's own `inspect: files`, which asks no target."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from memstory.target import Tree


def inspect_files(folder: Path, words: Sequence[str] = ()) -> Tree:
    """Return every file under `folder` with its hash, and which of `words` stand in which file.

    `{"files": [{"path", "bytes", "sha256"}], "digest": sha256 of that list, "containing": {word: [paths]}}`; text is
    looked for as UTF-8 bytes, in names too.
    """
    files = []
    containing: dict[str, list[str]] = {word: [] for word in words}
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        files.append({"path": name, "bytes": len(content), "sha256": digest})
        whole.update(f"{name}\0{digest}\n".encode())
        for word in words:
            if word in name or word.encode() in content:
                containing[word].append(name)
    return {"files": files, "digest": whole.hexdigest(), "containing": containing}


def texts_in_files(folder: Path, texts: Sequence[str]) -> Sequence[str]:
    """Return those of `texts` that stand in a file under `folder`, whatever the case of English letters."""
    contents = [path.read_bytes().lower() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [text for text in texts if any(text.encode().lower() in content for content in contents)]
