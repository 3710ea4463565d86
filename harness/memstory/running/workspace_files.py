"""What is in a case's folder: the harness reads and changes it without asking the target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memstory.contract.errors import TargetError
from memstory.contract.target import Tree
from memstory.results.containment import found_in


def inspect_files(folder: Path, words: Sequence[str] = ()) -> Tree:
    """Return every file under `folder` with its hash, and which of `words` are in which file.

    `{"files": [{"path", "bytes", "sha256"}], "digest": sha256 of that list, "containing": {word: [paths]}}`; text is
    looked for as UTF-8 bytes, in names too.
    """
    files = []
    containing: dict[str, list[str]] = {word: [] for word in words}
    whole = hashlib.sha256()
    for path in _files(folder):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        files.append({"path": name, "bytes": len(content), "sha256": digest})
        whole.update(f"{name}\0{digest}\n".encode())
        for word in words:
            if word in name or word.encode() in content:
                containing[word].append(name)
    return {"files": files, "digest": whole.hexdigest(), "containing": containing}


def texts_in_files(folder: Path, texts: Sequence[str]) -> Sequence[str]:
    """Return those of `texts` that are in a file under `folder`, as UTF-8 in any spelling."""
    found = found_in(texts, [path.read_bytes().decode("utf-8", "replace") for path in _files(folder)])
    return [text for text in texts if text in found]


def has_files(folder: Path) -> bool:
    """Return whether a file with something in it is under `folder`."""
    return any(path.stat().st_size for path in _files(folder))


def tamper(folder: Path, change: Mapping[str, Tree]) -> None:
    """Edit, remove or cut files under `folder` as a story says; TargetError where there was nothing to change."""
    edits: Mapping[str, str] = change.get("edit", {})
    for old, new in edits.items():
        holding = [path for path in _files(folder) if old.encode() in path.read_bytes()]
        _require_hit(holding, f"no file holds '{old}' as it was told")
        _require_hit(holding if old != new else [], f"'{old}' stays what it is")
        for path in holding:
            path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    if pattern := change.get("remove") or change.get("cut"):
        named = [path for path in _files(folder) if path.match(pattern)]
        _require_hit(named, f"no file is called '{pattern}'")
        _require_hit("remove" in change or [path for path in named if path.stat().st_size], f"'{pattern}' is empty")
        for path in named:
            if "remove" in change:
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _require_hit(found: object, otherwise: str) -> None:
    if not found:
        raise TargetError(f"tamper: {otherwise}, so that nothing was changed and this shows nothing")
