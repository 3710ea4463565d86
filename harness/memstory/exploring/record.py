"""What explorations leave behind: explore.json, the stories of their findings, a report, and the list of known ones."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memstory.contract.codec import Misfit, decode, encode
from memstory.contract.errors import SetupError
from memstory.exploring.search import FAILS, Breach, Exploration
from memstory.reporting.document import Document, Items, ListItem, Markup, Note, Section, Table
from memstory.reporting.markdown import as_markdown
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import HARMS
from memstory.results.runs import quantity

RECORD_NAME: Final = "explore.json"
REPORT_NAME: Final = "explore.md"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBreach:
    """A finding that somebody has looked at: whose it is, its name, why it stays, and where that is discussed."""

    target: str
    finding: str
    reason: str
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Explorations of one call, with the findings that were known before."""

    explorations: Sequence[Exploration]
    known: Sequence[KnownBreach] = ()
    format: int = _FORMAT

    def known_of(self, exploration: Exploration) -> Sequence[tuple[KnownBreach, Breach]]:
        """Return what is known and was found again."""
        return [
            (known, finding)
            for known in self.known
            for finding in exploration.findings
            if (known.target, known.finding) == (exploration.target, finding.name)
        ]

    def new_of(self, exploration: Exploration) -> Sequence[Breach]:
        """Return the findings that nobody knew, the worst harm first."""
        again = {finding.name for _, finding in self.known_of(exploration)}
        return sorted(
            (one for one in exploration.findings if one.name not in again), key=lambda one: HARMS.index(one.harm)
        )

    def gone_from(self, exploration: Exploration) -> Sequence[KnownBreach]:
        """Return what is known and was not found this time."""
        again = {known.finding for known, _ in self.known_of(exploration)}
        return [one for one in self.known if one.target == exploration.target and one.finding not in again]


def read_known(path: Path) -> Sequence[KnownBreach]:
    """Return the list of known findings in a TOML file of tables `[[known]]`.

    Raises:
        SetupError: the file cannot be read, or a table lacks its target, its finding or its reason.
    """
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise SetupError(f"{path}: this is not TOML: {error}") from error
    tables = tree.get("known", [])
    if set(tree) - {"known"} or not isinstance(tables, list):
        raise SetupError(f"{path}: allowed are tables [[known]] with target, finding, reason and link")
    try:
        return [decode(KnownBreach, table) for table in tables]
    except Misfit as error:
        raise SetupError(
            f"{path}: [[known]] {error}; a table has target, finding, reason and, if you like, link"
        ) from error


def read_record(path: Path) -> Record:
    """Return what an exploration wrote; `path` is explore.json or its folder.

    Raises:
        SetupError: there is none, or it is not one.
    """
    file = path / RECORD_NAME if path.is_dir() else path
    try:
        record: Record = decode(Record, json.loads(file.read_text("utf-8")))
    except OSError as error:
        raise SetupError(f"{file}: {error.strerror}; 'memstory explore --target NAME' writes it") from error
    except (Misfit, ValueError) as error:
        raise SetupError(f"{file}: this is no record of an exploration: {error}") from error
    return record


def clear_record(folder: Path) -> None:
    """Take away an earlier exploration with its stories, which would seem to be of the next."""
    for name in _stories_of(folder):
        (folder / name).unlink(missing_ok=True)
    (folder / RECORD_NAME).unlink(missing_ok=True)


def write_record(folder: Path, record: Record) -> None:
    """Write explore.json, explore.md and a story file for each finding that has a story into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    before = _stories_of(folder)
    stories = {
        story_name(exploration, finding): finding.story
        for exploration in record.explorations
        for finding in exploration.findings
        if finding.story
    }
    for name, text in stories.items():
        write_text(folder / name, text)
    write_text(folder / RECORD_NAME, record_text(record))
    write_text(folder / REPORT_NAME, as_markdown(record_document(record)))
    # A finding that turned out to be part of another has no story of its own any more.
    for name in before - stories.keys():
        (folder / name).unlink(missing_ok=True)


def _stories_of(folder: Path) -> AbstractSet[str]:
    """Return the files of the stories that the record in a folder speaks of."""
    if not (folder / RECORD_NAME).is_file():
        return set()
    explorations = read_record(folder).explorations
    return {story_name(one, finding) for one in explorations for finding in one.findings if finding.story}


def record_text(record: Record) -> str:
    """Return the text of explore.json."""
    return json.dumps(encode(record), ensure_ascii=False, indent=1)


def story_name(exploration: Exploration, finding: Breach) -> str:
    """Return the name of the file of a finding's story."""
    target = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in exploration.target)
    id_ = finding.story.partition("\n")[0].removeprefix("story: ").lower()
    return f"{target}-{id_}.story.yaml"


def record_document(record: Record) -> Document:
    """Return the report of explorations: what was found, by harm, and what was done and could not be."""
    return [Section("Exploration", [*_summary(record)], level=1),
            *(part for one in record.explorations for part in _exploration_sections(record, one))]  # fmt: skip


def _summary(record: Record) -> Iterator[Note | Table]:
    yield Note(
        "Programs of operations were drawn from a seed and compared with a plain model of a memory. Each finding is a "
        "broken promise with the smallest program that breaks it; no finding means that none was met in this many "
        "examples, not that there is none."
    )
    rows = [
        [one.target, f"{one.examples:,}", f"{sum(one.operations.values()):,}", f"{one.seconds:.0f} s", str(one.seed),
         str(len(record.new_of(one))), str(len(record.known_of(one))), str(len(one.unsteady))]
        for one in record.explorations
    ]  # fmt: skip
    header = ["target", "examples", "operations", "time", "seed", "findings", "known", "not repeated"]
    yield Table(header, rows, numbers=slice(1, 3))


def _exploration_sections(record: Record, one: Exploration) -> Iterator[Section]:
    new = record.new_of(one)
    by_harm = ", ".join(f"{harm}: {count}" for harm in HARMS if (count := sum(found.harm == harm for found in new)))
    parts: list[Note | Items | Table] = [Note(f"Findings by harm: {by_harm}." if new else "No finding.")]
    parts += [Items([_item(one, found) for found in new])] if new else []
    known = [ListItem(f"{found.name}: {listed.reason} {listed.link}".strip()) for listed, found in record.known_of(one)]
    parts += [Note("Known, found again:"), Items(known)] if known else []
    gone = [ListItem(f"{listed.finding}: {listed.reason}") for listed in record.gone_from(one)]
    parts += [Note("Known, gone this time:"), Items(gone)] if gone else []
    loose = [ListItem(f"{unsteady_line(found)} (example {found.number})") for found in one.unsteady]
    parts += [Note("Seen, and not each time again on a fresh memory:"), Items(loose)] if loose else []
    rows = [[name, f"{count:,}"] for name, count in sorted(one.operations.items())]
    parts += [Table(["operation", "done"], rows, numbers=slice(1, 2))]
    untried = [[name, f"{count:,}"] for name, count in sorted(one.untried.items())]
    parts += [Table(["declined", "times"], untried, numbers=slice(1, 2))] if untried else []
    lacking = [[rule, ", ".join(lacks)] for rule, lacks in one.left_out.items()]
    parts += [Table(["could not be tried", "the target lacks"], lacking)] if lacking else []
    yield Section(one.target, parts)


def _item(one: Exploration, found: Breach) -> ListItem:
    inner = [found.says, f"name: {found.name}; seed {found.seed}, example {found.number}"]
    inner += [f"story: {story_name(one, found)}" if found.written == FAILS else f"story: {found.written}"]
    return ListItem([Markup(f"**{found.harm}** "), found.title], inner, found.story)


def new_findings(before: Record, after: Record) -> Sequence[str]:
    """Return a line for each finding of `after` that `before` has not, on targets that both explored."""
    seen = {one.target: {found.name for found in one.findings} for one in before.explorations}
    return [
        f"{one.target}: {found.name}: {found.says}"
        for one in after.explorations
        for found in after.new_of(one)
        if found.name not in seen.get(one.target, ())
    ]


def unsteady_line(found: Breach) -> str:
    """Return what was seen and not each time again."""
    how = "not repeated" if found.repeated == 0 else "repeated"
    doubt = f" ({found.written})" if found.written else ""
    return f"seen once, {how}: {found.repeated} of {found.plays}: {found.title}: {found.says}{doubt}"


def headline(one: Exploration) -> str:
    """Return what was done, for a line on the screen."""
    some = ", ".join(f"{op} {times:,}" for op, times in sorted(one.operations.items()))
    return f"{quantity(one.examples, 'example')}, {quantity(sum(one.operations.values()), 'operation')} ({some})"
