"""From the `retrieval:` of a story to the task: where its file is, and which loader reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memstory import bundled
from memstory.bundled import bundled_stories
from memstory.contract.errors import Mark, NotSupported, SetupError, StoryError
from memstory.contract.texts import did_you_mean, nearest
from memstory.data_sets import SETS
from memstory.datasets.beam import read_beam
from memstory.datasets.beir import read_beir
from memstory.datasets.jsonl import read_documents, read_questions, read_task
from memstory.datasets.locomo import read_audit, read_locomo
from memstory.datasets.longmemeval import read_longmemeval
from memstory.datasets.set_copies import SetCopy, checked_copy, hash_of, pin_of, set_copy
from memstory.language.story import Retrieval
from memstory.language.story_paths import OPTION, Bounds, root_around
from memstory.tasks.retrieval import Document, RetrievalTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one data set may be; `holds` says in words what is there, `get` how to come by it."""

    name: str
    holds: str
    get: str
    is_folder: bool = False
    beside: Path | None = None

    @property
    def variable(self) -> str:
        """The variable that names a copy."""
        return f"MEMSTORY_{self.name.replace('-', '_').upper()}"

    def find(self, named: str | None, base: Path, environ: Mapping[str, str]) -> Path:
        """Return where the story says, else the variable, else where the set is kept, else it is beside the checkout.

        Raises:
            NotSupported: it is not on this machine; the reason says what to do.
            SetupError: the variable names something else, or what is kept was changed.
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
        if kept := checked_copy(self.name, environ):
            return kept.path
        around = (Path(bundled.__file__).parents[2], Path.cwd()) if self.beside else ()
        for path in (folder.parent / (self.beside or "") for folder in around):
            if self._is_there(path):
                return path
        raise NotSupported(f"dataset.{self.name}", f"{self.holds} is not on this machine: {self._how_to_get()}")

    def _how_to_get(self) -> str:
        return f"{self.get}, or set {self.variable} to the {self._kind}"

    @property
    def _kind(self) -> str:
        return "folder" if self.is_folder else "file"

    def _is_there(self, path: Path) -> bool:
        return path.is_dir() if self.is_folder else path.is_file()


BEIR: Final = Place(
    name="beir", holds="a folder in BEIR's form (corpus.jsonl, queries.jsonl, qrels)", get="make one", is_folder=True
)
LOCOMO: Final = "locomo"
AUDIT: Final = "locomo-audit"
_BESIDE: Final = {LOCOMO: Path("shared", "data", "locomo-dev.json")}


def place_of(name: str) -> Place:
    """Return where the set of that name may be."""
    one = SETS[name]
    return Place(
        name=name,
        holds=f"{one.title} ({one.licence})",
        get=f"'memstory data get {name}' fetches it, 'memstory data add {name} PATH' takes your copy",
        is_folder=one.file is None,
        beside=_BESIDE.get(name),
    )


DISTRACTORS: Final = Path("corpora", "distractors.jsonl")
DATASETS: Final[Mapping[str, Callable[[Path, Retrieval], RetrievalTask]]] = {
    "beam": read_beam,
    "beir": read_beir,
    "locomo": read_locomo,
    "longmemeval": read_longmemeval,
}
"""What reads each data set."""


def _set_of(retrieval: Retrieval) -> str:
    """Return the name of the set that a story means: `longmemeval` with the split `m` is `longmemeval-m`."""
    name = f"{retrieval.dataset}-{retrieval.split}".lower() if retrieval.split else str(retrieval.dataset)
    if name in SETS:
        return name
    splits = [one.partition("-")[2] for one in SETS if one.startswith(f"{retrieval.dataset}-")]
    known = ", ".join(splits) or "it has none"
    raise StoryError(f"{retrieval.dataset} has no split {retrieval.split!r}. Known: {known}.", retrieval.mark)


def load_task(
    retrieval: Retrieval,
    base: Path,
    *,
    root: Path | None = None,
    anywhere: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> RetrievalTask:
    """Return the documents and questions that `retrieval` names.

    Args:
        retrieval: what the story says.
        base: the folder of the story file, to which its paths are relative.
        root: the stories' root, which a corpus may not leave, and where a path is looked up that `base` does not have;
            None means the folder `stories` around `base`, or `base` itself if there is none. The corpora of the bundled
            stories are found from anywhere.
        anywhere: whether the story may name files outside that root.
        environ: where to look for the variables that name data sets.

    Raises:
        StoryError: a wrong path, a bad line, an unknown dataset; it carries the mark of `retrieval`.
        NotSupported: a dataset that this machine does not have; the reason says what to do.
        SetupError: a dataset file of another format, or a variable that names no file.
    """
    if retrieval.dataset is None and retrieval.preloaded:
        queries = _corpus_file(retrieval, retrieval.queries, base, root or root_around(base), anywhere=anywhere)
        return read_questions(queries, retrieval.mark, retrieval.where)
    if retrieval.dataset is None:
        corpus, queries = _corpus_files(retrieval, base, root or root_around(base), anywhere=anywhere)
        return read_task(corpus, queries, retrieval.mark, retrieval.where)
    if retrieval.dataset not in DATASETS:
        hint = did_you_mean(retrieval.dataset, DATASETS)
        raise StoryError(f"unknown dataset {retrieval.dataset!r}. Known: {', '.join(DATASETS)}.{hint}", retrieval.mark)
    bounds = Bounds(base=base, workspace=base, anywhere=anywhere)
    bounds.check("retrieval: path", retrieval.path, retrieval.mark)
    read = DATASETS[retrieval.dataset]
    if retrieval.dataset == BEIR.name:
        return read(BEIR.find(retrieval.path, base, environ), retrieval)
    name = _set_of(retrieval)
    path = place_of(name).find(retrieval.path, base, environ)
    if retrieval.labels is None:
        return with_origin(read(path, retrieval), name, path, environ)
    if name != LOCOMO:
        raise StoryError(f"{name} has no audit of its labels: 'labels' goes with {LOCOMO}", retrieval.mark)
    audit = place_of(AUDIT).find(None, base, environ)
    task = with_origin(read_locomo(path, retrieval, audit), name, path, environ)
    return with_origin(task, AUDIT, audit, environ)


def read_set(name: str, path: Path) -> None:
    """Go through a set at `path` once; SetupError where it is not of the set's form."""
    if name == AUDIT:
        read_audit(path)
    else:
        dataset = name.partition("-")[0]
        DATASETS[dataset](path, Retrieval(mark=Mark("", 0, 0), dataset=dataset))


def with_origin(task: RetrievalTask, name: str, path: Path, environ: Mapping[str, str]) -> RetrievalTask:
    """Return a task that says what vouches for the data at `path`."""
    kept = set_copy(name, environ)
    if kept is not None and kept.path == path:
        return replace(task, notes=(*task.notes, str(kept)))
    if not path.is_file():
        return replace(task, notes=(*task.notes, f"{name}: unpinned, the folder {path}"))
    found = hash_of(path)
    pin = pin_of(SETS[name], {SETS[name].file or "": found}, is_at_commit=False)
    copy = SetCopy(name=name, folder=path.parent, hashes={path.name: found}, pin=pin, origin=path.as_uri())
    return replace(task, notes=(*task.notes, str(copy)))


def load_distractors(retrieval: Retrieval, base: Path, *, anywhere: bool = False) -> tuple[Document, ...]:
    """Return the memories that are put beside a corpus to make it harder: those that the story names, or our own.

    Raises:
        StoryError: a wrong path or a bad line.
        SetupError: the installation lacks its own file.
    """
    if retrieval.distractors is not None:
        file = _corpus_file(retrieval, retrieval.distractors, base, root_around(base), anywhere=anywhere)
        return read_documents(file, retrieval.mark)
    path = bundled_stories() / DISTRACTORS
    if not path.is_file():
        raise SetupError(f"{path} is missing, which 'distractors' are drawn from: install memstory again")
    return read_documents(path, retrieval.mark)


def _corpus_files(retrieval: Retrieval, base: Path, root: Path, *, anywhere: bool) -> tuple[Path, Path]:
    """Return both files; what is wrong with either is said together."""
    found: list[Path] = []
    wrong: list[str] = []
    for key, name in (("corpus", retrieval.corpus), ("queries", retrieval.queries)):
        try:
            found.append(_corpus_file(retrieval, name, base, root, anywhere=anywhere))
        except StoryError as error:
            wrong.append(f"{key}: {error.message}")
    if wrong:
        raise StoryError("\n".join(wrong), retrieval.mark)
    corpus, queries = found
    return corpus, queries


def _corpus_file(retrieval: Retrieval, name: str | None, base: Path, root: Path, *, anywhere: bool) -> Path:
    if not name:
        raise StoryError("a retrieval needs both 'corpus' and 'queries', or a 'dataset'", retrieval.mark)
    candidates = [(folder / name).resolve() for folder in (base, root)]
    inside = [path for path in candidates if anywhere or path.is_relative_to(root.resolve())]
    ours = (bundled_stories() / name).resolve()
    if ours.is_relative_to(bundled_stories().resolve()) and ours.is_file():
        inside.append(ours)
    if not inside:
        message = f"{name} is outside the stories' root: keep data files below it; {OPTION} allows any path"
        raise StoryError(message, retrieval.mark)
    found = next((path for path in inside if path.is_file()), None)
    if found is None:
        near = _nearest(inside[0])
        hint = f" Did you mean {near}?" if near else " Create it, or correct the path."
        raise StoryError(f"no file {name}, looked up from the story's folder.{hint}", retrieval.mark)
    return found


def _nearest(missing: Path) -> str | None:
    if not missing.parent.is_dir():
        return None
    # By the stem: a shared ending makes two names look alike.
    names = {path.stem: path.name for path in sorted(missing.parent.iterdir()) if path.suffix == missing.suffix}
    stem = nearest(missing.stem, names)
    return names[stem] if stem else None
