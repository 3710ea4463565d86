"""Where datasets that are not bundled are: named by a story, by a variable, or next to the checkout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memstory import bundled
from memstory.contract.errors import NotSupported, SetupError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one data set may be; `holds` says in words what is there, `get` how to come by it."""

    name: str
    variable: str
    holds: str
    get: str
    is_folder: bool = False
    beside: Path | None = None

    def find(self, named: str | None, base: Path, environ: Mapping[str, str]) -> Path:
        """Return where the story says, else where the variable says, else where it is beside the checkout.

        Raises:
            NotSupported: it is not on this machine; the reason says what to do.
            SetupError: the variable names something else.
        """
        if named:
            path = base / Path(named).expanduser()
            if self._is_there(path):
                return path
            reason = f"{self.holds} is not at {named}, where the story has it: put the {self._kind} there"
            raise NotSupported(f"dataset.{self.name}", reason)
        if variable := environ.get(self.variable):
            if self._is_there(Path(variable)):
                return Path(variable)
            raise SetupError(f"{self.variable} names {variable}, which is not a {self._kind}: correct it or unset it")
        around = (Path(bundled.__file__).parents[2], Path.cwd()) if self.beside else ()
        for path in (folder.parent / (self.beside or "") for folder in around):
            if self._is_there(path):
                return path
        or_beside = f", or put it at {Path('..') / self.beside}" if self.beside else ""
        reason = (
            f"{self.holds} is not on this machine: {self.get} and set {self.variable} to the {self._kind}{or_beside}"
        )
        raise NotSupported(f"dataset.{self.name}", reason)

    @property
    def _kind(self) -> str:
        return "folder" if self.is_folder else "file"

    def _is_there(self, path: Path) -> bool:
        return path.is_dir() if self.is_folder else path.is_file()


LOCOMO: Final = Place(
    name="locomo",
    variable="MEMSTORY_LOCOMO",
    holds="LoCoMo",
    get="download its JSON (snap-research/locomo, CC BY-NC 4.0)",
    beside=Path("shared", "data", "locomo-dev.json"),
)
LONGMEMEVAL: Final = Place(
    name="longmemeval",
    variable="MEMSTORY_LONGMEMEVAL",
    holds="LongMemEval",
    get="download one of its JSON files (xiaowu0162/longmemeval-cleaned, MIT)",
)
BEIR: Final = Place(
    name="beir",
    variable="MEMSTORY_BEIR",
    holds="a folder in BEIR's form (corpus.jsonl, queries.jsonl, qrels)",
    get="make one",
    is_folder=True,
)
