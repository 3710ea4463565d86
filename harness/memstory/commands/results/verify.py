"""`memstory verify`: judges the recordings of a pack again, and says what could not be checked."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from memstory.bundled import bundled_stories
from memstory.case import Case
from memstory.commands.command import FINDINGS, OK, Command
from memstory.commands.output import complain, say
from memstory.commands.results.rejudging import rejudge_case
from memstory.contract.errors import Mark, MemstoryError, NotSupported, StoryError
from memstory.data_sets import STORIES
from memstory.datasets import load_task
from memstory.judging.evaluation import evaluate
from memstory.language.row_files import OpenLines
from memstory.language.stories import InvalidStory, parse_stories
from memstory.language.story import Story
from memstory.reporting.document import Note, Section, Table
from memstory.reporting.markdown import as_markdown
from memstory.results.folder.pack import Pack, read_pack, rows_name
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import CaseResult
from memstory.results.runs import quantity, some

_COLUMNS: Final = ("success@1", "success@5", "recall@10", "ndcg@10", "mrr")
_CLOSE: Final = 1e-6
_UNSEEN: Final = "that this target, of the version it names, gave these hits and took these times"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What verifying one pack showed: what is `wrong`, and what could not be `checked`."""

    pack: Pack
    wrong: Sequence[str]
    unchecked: Sequence[str]


def verify_pack(pack: Pack) -> Verification:
    """Judge every recording of a pack again by its own stories; hold stories and gold against those that are here."""
    wrong: list[str] = []
    unchecked: list[str] = []
    stories = _stories_of(pack)
    ours = set(_our_stories())
    for case in pack.run.cases:
        story = stories.get((case.story, case.row))
        if story is None or story.digest != case.digest:
            wrong.append(f"{case.id}: the pack does not have the story that it ran")
            continue
        if not case.trials:
            continue
        again = rejudge_case(case, story)
        if again.now == "cannot":
            unchecked.append(f"{case.id}: {again.reason}")
        elif again.has_flipped:
            wrong.append(f"{case.id}: was {again.was}, and is {again.now} when judged again ({again.reason})")
        else:
            wrong += _other_scores(case, story)
        if story.retrieval is not None and case.retrieval:
            wrong += _other_gold(case, story, unchecked)
    strange = sorted({case.name for case in pack.run.cases if case.digest not in ours})
    if strange:
        unchecked.append(f"what is not memstory's own: {quantity(len(strange), 'story')}, {some(strange)}")
    return Verification(pack=pack, wrong=wrong, unchecked=[*dict.fromkeys(unchecked), _UNSEEN])


def _stories_of(pack: Pack) -> Mapping[tuple[str, str | None], Story]:
    def rows_of(file: str) -> OpenLines:
        return lambda rows, mark: iter(BytesIO(_read_member(pack, rows_name(file, rows), mark).encode()))

    files = {name: text for name, text in pack.stories.items() if "/" not in name}
    read = (one for name, text in files.items() for one in parse_stories(text, name, lines=rows_of(name)))
    return {(one.id, one.row): one for one in read if not isinstance(one, InvalidStory)}


def _read_member(pack: Pack, name: str, mark: Mark) -> str:
    if name not in pack.stories:
        raise StoryError(f"the pack has no {name}", mark)
    return pack.stories[name]


def _our_stories() -> Iterator[str]:
    """Yield the digests of the stories that come with this memstory."""
    for root in (STORIES, bundled_stories()):
        for path in sorted(root.rglob("*.yaml")):
            for one in parse_stories(path.read_text("utf-8"), path.name):
                if not isinstance(one, InvalidStory):
                    yield one.digest


def _other_scores(case: CaseResult, story: Story) -> Iterator[str]:
    again = evaluate(Case(story=story, target=case.target), [trial.recording for trial in case.trials])
    for name in sorted({*again.metrics, *case.metrics}):
        was, now = case.metrics.get(name), again.metrics.get(name)
        if was is None or now is None or abs(was - now) > _CLOSE:
            yield f"{case.id}: {name} is {was} in the results, and {now} by the recordings"


def _other_gold(case: CaseResult, story: Story, unchecked: list[str]) -> Iterator[str]:
    """Yield the questions whose gold is not that of the data here; note where there are no such data."""
    assert story.retrieval is not None  # noqa: S101  (the caller looked)
    record = case.retrieval[0]
    try:
        task = load_task(story.retrieval, STORIES)
    except NotSupported:
        unchecked.append(f"the gold of {record.name}: its data are not on this machine ('memstory data get')")
        return
    except MemstoryError as error:
        unchecked.append(f"the gold of {record.name}: {error}")
        return
    gold = {one.id: tuple(one.relevant) for each in task.collections for one in each.questions}
    if task.digest != record.digest:
        part = "a sample, " if any(note.startswith("a sample") for note in record.notes) else ""
        unchecked.append(
            f"{record.name}: {part}data {record.digest[:12]}, here {task.digest[:12]}; what both have is compared"
        )
    other = [one.id for one in record.questions if one.id in gold and gold[one.id] != tuple(one.relevant)]
    if other:
        yield f"{case.id}: {quantity(len(other), 'question')} with other gold than the data here: {some(other)}"


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packs", nargs="+", type=Path, metavar="PACK", help="what 'memstory submit' wrote")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a Markdown page with the rows of all packs")


def _run(chosen: argparse.Namespace) -> int:
    findings = [(path, verify_pack(read_pack(path))) for path in chosen.packs]
    for path, found in findings:
        trials = sum(len(case.trials) for case in found.pack.run.cases)
        verdict = "WRONG" if found.wrong else "verified"
        say(f"{path}: {verdict}: {quantity(trials, 'recording')} judged again, SHA-256 {found.pack.digest[:12]}")
        for line in found.wrong:
            say(f"  wrong: {line}")
        for line in found.unchecked:
            say(f"  not checked: {line}")
    if any(found.wrong for _, found in findings):
        if chosen.page:
            complain(f"{chosen.page} is not written: a pack is wrong")
        return FINDINGS
    if chosen.page:
        write_text(chosen.page, page_of([(path.name, found) for path, found in findings]))
        say(f"page: {chosen.page}")
    return OK


def page_of(findings: Sequence[tuple[str, Verification]]) -> str:
    """Return the page of rows of verified packs."""
    rows = [
        [
            case.target, case.name, str(sum(bool(one.relevant) for one in case.retrieval[0].counted)),
            *(f"{case.metrics[name]:.3f}" if name in case.metrics else "-" for name in _COLUMNS),
            "; ".join(case.retrieval[0].notes), name,
        ]
        for name, found in findings
        for case in found.pack.run.cases
        if case.outcome == "measured" and case.retrieval
    ]  # fmt: skip
    header = ["target", "measurement", "n", *_COLUMNS, "data", "pack"]
    packs = [
        [name, found.pack.digest, found.pack.run.fingerprint.memstory, "; ".join(found.unchecked)]
        for name, found in findings
    ]
    how = "Each row is from a pack that 'memstory verify' judged again: its scores follow from its recordings."
    sections = [
        Section("Rows", [Note(how), Table(header, rows, numbers=slice(2, 3 + len(_COLUMNS)))]),
        Section("Packs", [Table(["pack", "SHA-256", "memstory", "not checked"], packs)]),
    ]
    return as_markdown([Section("Submissions", sections, level=1)])


COMMAND = Command(
    about=(
        "Judge the recordings of a pack again, without its target: is every file as it was packed, do the outcomes and "
        "scores follow from the recordings, are the stories memstory's own, is the gold that of the data here. It says "
        "what it could not check: above all, that the memory really gave these hits."
    ),
    examples="""
examples:
  memstory verify mine.memstory.zip
  memstory verify reports/submissions/*.zip --page reports/submissions/README.md
""",
    exit_codes=("exit codes: 0 nothing is wrong, 1 something is, 2 a pack cannot be read"),
    options=_options,
    run=_run,
)
