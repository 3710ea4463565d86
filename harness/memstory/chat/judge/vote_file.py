"""A judge's replies in a JSON Lines file to which workers append concurrently."""

from __future__ import annotations

import json
from pathlib import Path

from memstory.contract.errors import SetupError


class VoteFile:
    """Replies by key; new ones are appended to `path`, or kept in memory only where that is None."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._said: dict[str, str] = {}
        try:
            text = path.read_text("utf-8") if path is not None and path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"{path} cannot be read as a judge's replies: {error}. Name another file") from error
        for line in text.splitlines():
            try:
                one = json.loads(line)
                self._said[one["key"]] = str(one["said"])
            except (ValueError, KeyError, TypeError):
                # A torn line of a killed run: it is asked again.
                continue

    def __contains__(self, key: str) -> bool:
        return key in self._said

    def __getitem__(self, key: str) -> str:
        return self._said[key]

    def keep(self, key: str, judge: str, said: str) -> None:
        """Keep a reply."""
        self._said[key] = said
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "judge": judge, "said": said}, ensure_ascii=False) + "\n")
