"""report.md: what a stranger needs to know about a run, made from results.json alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.reporting.measured import measured_page
from memstory.reporting.not_passed import could_not_run, went_wrong
from memstory.reporting.overview.facts import facts_of
from memstory.reporting.owed import owed_section
from memstory.reporting.repetition import repetition
from memstory.reporting.retrieval_tables import retrieval
from memstory.results.outcomes import Outcome
from memstory.results.runs import Run, natural

SLOWEST: Final = 10

HOW_TO_READ: Final = """\
A *story* is a short YAML script of what a memory must do; a *target* is a memory it was run on; a *case* is one story
on one target, in a fresh memory. `passed` and `failed` are judgements: everything the story expects was compared with
what the memory returned. The other three are none, and count neither way: `unsupported` means that the target cannot
do what the story needs, `error` that the target or the machine broke, `invalid` that the story itself is wrong. A
dash in the matrix means that the story was not meant for that target. Retrieval is scored from gold ids, not by a
judge: R@k is the mean share of the right documents among the first k, nDCG@10 rewards placing them early, MRR is the
mean of 1 / rank of the first right one; *n* is the number of questions in that mean. Categories marked *apart* are
not part of the total. All of it stands in `results.json` in full."""

_WRONG: Final[Mapping[Outcome, str]] = {
    "failed": "failed",
    "error": "ended in an error before a judgement",
    "invalid": "not run because the story itself is wrong",
}


def render(run: Run) -> str:
    """Return the report as markdown; everything that came from a story or a target is escaped."""
    sections = [
        _head(run),
        _section("Stories on targets", _matrix(run)),
        _section("What a memory owes", owed_section(run)),
        _section("Measured", measured_page(run)),
        _section("Retrieval", retrieval(run)),
        _section("Repeated trials", repetition(run)),
        went_wrong(run),
        _section("Could not run", could_not_run(run)),
        _section("Warnings", _warnings(run)),
        _section("Slowest cases", _slowest(run)),
        _section("Requirements", _coverage(run)),
        _section("How to read this", HOW_TO_READ),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _head(run: Run) -> str:
    return "\n\n".join([f"# memstory: {views.headline(run)}", _conclusion(run), _facts(run), *_notes(run)])


def _conclusion(run: Run) -> str:
    counts, cases = run.summary, len(run.cases)
    ran = counts["passed"] + counts["failed"]
    wrong = [f"{counts[name]} {words}" for name, words in _WRONG.items() if counts[name]]
    if not ran:
        first = f"**Nothing was judged**: none of {cases} cases ran to its end."
    elif wrong:
        first = f"**Not all is well**: {', '.join(wrong)}."
    else:
        first = f"**Every case that ran passed** ({ran} of {cases})."
    if counts["measured"]:
        first += f" {counts['measured']} only took measures, which nothing can fail."
    if counts["unsupported"]:
        first += f" {counts['unsupported']} could not run on their target and prove nothing."
    if part := views.shard_name(run):
        first += f" **This is only {part}**: 'memstory merge' puts all of them together."
    if not run.complete:
        ended = sum(not case.is_lost for case in run.cases)
        first += f" **The run was cut short**: {ended} of {cases} cases had ended by then, the others have no result."
    return first


def _facts(run: Run) -> str:
    return table(["", ""], [(name, inline(text)) for name, text in facts_of(run).items()])


def _notes(run: Run) -> Iterable[str]:
    models = [f"“{inline(model)}”" for model in views.stand_ins(run)]
    if models:
        yield (
            f"> **Not a language model:** {', '.join(models)}. A deterministic stand-in chooses tools and words by"
            " fixed rules. Its stories show that the memory and its tools work, not how well a language model uses"
            " them."
        )


def _matrix(run: Run) -> str:
    targets = views.targets_of(run)
    rows = [
        [inline(story), inline(title), *(_cell(outcomes.get(target)) for target in targets)]
        for (story, title), outcomes in views.matrix(run).items()
    ]
    return table(["Story", "Title", *map(inline, targets)], rows) if rows else "No case ended."


def _cell(outcome: Outcome | None) -> str:
    return f"{views.SYMBOLS[outcome]} {outcome}" if outcome else "-"


def _warnings(run: Run) -> str:
    cases: dict[str, list[str]] = {}
    for case in run.cases:
        for warning in case.warnings:
            cases.setdefault(warning, []).append(case.id)
    return "\n".join(f"- {inline(warning)} ({inline(', '.join(names))})" for warning, names in cases.items())


def _slowest(run: Run) -> str:
    ranked = sorted(run.cases, key=lambda case: -case.seconds)[:SLOWEST]
    rows = [[inline(case.id), f"{case.seconds:.2f}"] for case in ranked if case.seconds > 0]
    return table(["Case", "Seconds"], rows, right=[1]) if rows else ""


def _coverage(run: Run) -> str:
    """Return which requirements passing stories show, and which are claimed by stories that did not pass."""
    shown: dict[str, list[str]] = {}
    claimed: dict[str, list[str]] = {}
    for case in run.cases:
        for requirement in case.covers:
            claimed.setdefault(requirement, [])
            (shown if case.outcome == "passed" else claimed).setdefault(requirement, []).append(case.id)
    if not claimed:
        return ""
    rows = [
        [inline(name), inline(", ".join(shown.get(name, []))) or "-", inline(", ".join(claimed[name])) or "-"]
        for name in sorted(claimed, key=natural)
    ]
    counted = f"{len(shown)} of the {len(claimed)} requirements that these stories cover are shown by a passing case."
    listed = table(["Requirement", "Shown by", "Not passed"], rows)
    return f"{counted}\n\n<details><summary>Each requirement</summary>\n\n{listed}\n\n</details>"
