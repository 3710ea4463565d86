"""`memstory rejudge`: the recordings of a run, judged by the stories as they are now."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from memstory.bundled import named_path
from memstory.commands.command import FINDINGS, OK, Command, add_json
from memstory.commands.output import say, say_aside, say_json, table, with_progress
from memstory.commands.results.rejudging import Rejudgement, rejudge_case
from memstory.commands.results.results_files import recorded_run_at
from memstory.commands.story_files import story_files
from memstory.commands.story_loading import load
from memstory.contract.errors import SetupError
from memstory.results.outcomes import CaseResult
from memstory.results.runs import quantity


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or results.json in it")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="story files, or folders to search (default: the files of that run)"
    )
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    # A story that could not be read has nothing recorded.
    cases = [case for case in recorded_run_at(chosen.results).cases if case.trials]
    loaded = load(story_files(chosen.paths or _files_of(cases)))
    for error in loaded.errors:
        say_aside(str(error))
    stories = {(story.id, story.row): story for story in loaded.stories}
    judged = [rejudge_case(case, stories.get((case.story, case.row))) for case in with_progress(cases, "case")]
    flipped = [one for one in judged if one.has_flipped]
    if chosen.json:
        say_json([_as_json(one) for one in judged])
    else:
        _tell(judged, flipped)
    return FINDINGS if flipped or loaded.invalid else OK


def _files_of(cases: Sequence[CaseResult]) -> Sequence[str]:
    files = dict.fromkeys(case.where.rsplit(":", 2)[0] for case in cases)
    missing = [file for file in files if not named_path(file).is_file()]
    if missing:
        raise SetupError(
            f"the run was about {', '.join(missing)}, which is not here: type this where the run was started, "
            "or name the story files behind the folder"
        )
    return [str(named_path(file)) for file in files]


def _tell(judged: Sequence[Rejudgement], flipped: Sequence[Rejudgement]) -> None:
    if flipped:
        rows = [[one.id, one.was, "cannot be judged" if one.now == "cannot" else one.now, one.reason or ""]
                for one in flipped]  # fmt: skip
        say(table(["case", "was", "is now", "because"], rows, [None, None, None, 80]) + "\n")
    changed = sum(one.story_changed and not one.has_flipped for one in judged)
    said = (
        f"{quantity(len(judged), 'case')} judged again: {len(judged) - len(flipped)} unchanged, {len(flipped)} changed"
    )
    say(f"{said} ({quantity(changed, 'story')} edited since, with the same result)" if changed else said)


def _as_json(one: Rejudgement) -> dict[str, object]:
    return {
        "case": one.id,
        "was": one.was,
        "now": one.now,
        "reason": one.reason,
        "story_changed": one.story_changed,
    }


COMMAND = Command(
    about=(
        "Judge the recordings of a run again with the current stories, after you changed an expectation or updated "
        "memstory. No target is opened and nothing is run. Changed outcomes are listed, and so are stories whose "
        "steps changed, because these must be run again. results.json is not changed."
    ),
    examples="""
examples:
  memstory rejudge reports/latest                        by the files of that run
  memstory rejudge reports/latest mine.story.yaml        by other files
  memstory rejudge reports/latest --json                 for programs
""",
    exit_codes=("exit codes: 0 no outcome changed, 1 some did, 2 there are no recordings, or of another version"),
    options=_options,
    run=_run,
)
