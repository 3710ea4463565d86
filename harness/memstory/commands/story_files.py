"""Which files are stories: the plugin's own rule, for commands that do not start pytest.

A YAML file is one if its name ends in `.story.yaml`, if it is below the bundled stories or a folder of the ini
setting `memstory_stories`, or if it was named itself. No other YAML is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from memstory.bundled import PREFIX, bundled_stories, shown_path
from memstory.commands.ini_setting import story_folders
from memstory.contract.errors import SetupError
from memstory.contract.texts import nearest
from memstory.data_sets import SETS, set_story

ENDINGS: Final = (".story.yaml", ".story.yml")
SUFFIXES: Final = frozenset({".yaml", ".yml"})
_NOT_SEARCHED: Final = frozenset({"node_modules", "build", "dist", "venv", "__pycache__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file of stories, and how messages name it."""

    path: Path
    display: str


def story_files(named: Sequence[str], *, bundled: bool = False) -> Sequence[FoundFile]:
    """Return the story files that are named or are below a named folder, in order and each once.

    With `bundled` a name may be that of a bundled folder or file, such as `generic`; without one, all are meant.

    Raises:
        SetupError: a path that is not there or is not YAML, or no story file at all.
    """
    chosen = [bundled_path(name) if bundled or is_set(name) else name for name in named]
    root = bundled_stories().resolve()
    all_bundled = bundled and not any(Path(name).resolve().is_relative_to(root) for name in chosen)
    places = [*chosen, *([str(bundled_stories())] if all_bundled else [])] or ["."]
    roots = [root, *story_folders(Path.cwd())]
    found: dict[Path, FoundFile] = {}
    for place in places:
        for path in _below(place, roots):
            found.setdefault(path.resolve(), FoundFile(path=path, display=shown_path(path, Path.cwd())))
    if not found:
        searched = ", ".join("this folder" if place == "." else place for place in places)
        raise SetupError(
            f"no story file in {searched}. A file of stories ends in .story.yaml, is in a folder of the ini "
            "setting memstory_stories, or is named itself; --bundled names those that come with memstory, and "
            "'memstory data list' the sets of conversations"
        )
    return tuple(found.values())


def bundled_path(name: str) -> str:
    """Return `name` as a path below the bundled stories, where it is there and not here; `::ID` at its end stays.

    It may begin with `bundled/`, as the ids that runs print do, or be the name of a set of data.
    """
    path, mark, node = name.partition("::")
    there = set_story(path) or bundled_stories() / path.removeprefix(PREFIX)
    return f"{there}{mark}{node}" if path and not Path(path).exists() and there.exists() else name


def is_set(name: str) -> bool:
    """Whether `name` is that of a set of data with stories, and of nothing that is here."""
    path = name.partition("::")[0]
    return set_story(path) is not None and not Path(path).exists()


def _below(typed: str, roots: Sequence[Path]) -> Iterator[Path]:
    place = Path(typed)
    if place.is_dir():
        yield from (path for path in _yaml_below(place) if _is_story(path, roots))
    elif not place.exists():
        raise SetupError(f"no file or folder {typed}.{_near(place)}")
    elif place.suffix not in SUFFIXES:
        raise SetupError(f"{place} is not a story file: its name ends in '{place.suffix}', not in .yaml or .yml")
    else:
        yield place


def _yaml_below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _NOT_SEARCHED
            and not Path(place, name, "pyvenv.cfg").exists()  # A virtual environment, whatever its name.
        )
        yield from (Path(place, name) for name in sorted(files) if Path(name).suffix in SUFFIXES)


def _refuse(error: OSError) -> NoReturn:
    """Raise SetupError for a folder that cannot be read: its stories would be missing, and nothing would say so."""
    raise SetupError(f"{error.filename} cannot be searched for stories: {error.strerror}") from error


def _is_story(path: Path, roots: Sequence[Path]) -> bool:
    return path.name.endswith(ENDINGS) or any(path.resolve().is_relative_to(root) for root in roots)


def _near(missing: Path) -> str:
    there = missing.parent.iterdir() if missing.parent.is_dir() else ()
    beside = [path.name for path in there if path.suffix in SUFFIXES or path.is_dir()]
    near = nearest(missing.name, beside)
    if near:
        return f" Did you mean '{missing.parent / near}'?"
    if str(missing) == bundled_stories().name:
        return f" Did you mean '--bundled', the {missing} that come with memstory?"
    bundled = [path.name for path in bundled_stories().iterdir() if path.name != "corpora"]
    if near := nearest(str(missing), [name for name in SETS if set_story(name)]):
        return f" Did you mean '{near}', a set of data?"
    deep = [path.relative_to(bundled_stories()).as_posix() for path in bundled_stories().glob("*/*.yaml")]
    near = nearest(str(missing), [*bundled, *deep])
    return f" Did you mean '--bundled {near}'?" if near else ""
