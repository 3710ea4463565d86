"""How cases ended, counted: by target, cause and capability, what memories owe, and what changed since the last run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, get_args

from memstory.contract.values import STAND_IN, ModelUse
from memstory.language.matchers.hits import CorrectionOutcome
from memstory.reporting.document import (
    DASH,
    Badge,
    CaseLink,
    Items,
    ListItem,
    Markup,
    Note,
    Part,
    Section,
    ShareCell,
    Sign,
    Table,
    Words,
    join_words,
    one_line,
    where_any,
)
from memstory.reporting.sections.columns import (
    JUDGED,
    Column,
    TargetTotals,
    outcome_counts,
    shard_name,
    targets_of,
    trials_of,
)
from memstory.results.outcomes import OUTCOMES, WORST_FIRST, WRONG, CaseResult, Outcome
from memstory.results.runs import Run, by_key, natural, quantity
from memstory.scoring.statistics import wilson_interval

_PLACE: Final = re.compile(r"^\S+:\d+:\d+:? (?:step [\d.]+(?:, pass \d+)? \([a-z_]+\): )?")
_VARIES: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\d+(?:\.\d+)?|\([^()]*\)")
_SAME_WORDS: Final = 6
"""So many words of a reason decide what is the same cause; what follows quotes what was found."""

_CASES: Final = 6
_CHANGES: Final = 200
REASON_LIMIT: Final = 160
"""Characters of a reason in a table of causes."""

EVERY: Final = "all shared stories"
OTHER: Final = "other"
ALONE: Final = "stories of one target"

ESSENTIAL: Final = "essential"
"""The tag of the stories that a report shows by themselves, above all others."""

OWED: Final = "owed"
"""The tag of the stories about what a memory owes."""

CORRECTION_OUTCOMES: Final[Sequence[str]] = get_args(CorrectionOutcome)
OBLIGATIONS_HEADER: Final = ("obligations met", "leaks avoided", "cannot do", "not judged", *CORRECTION_OUTCOMES)
_OBLIGATIONS_NOTE: Final = Markup(
    "Obligations met: passed stories with the tag `owed`, of those that were judged. Leaks avoided: stories after "
    "which all that must be gone was gone, of those that looked for it, passed or failed. The two are never "
    "combined: a memory that stores nothing avoids every leak and meets no obligation. The last columns count "
    "corrections: only the new value is stored, both are, the outdated one is found first, only the old one is "
    "stored, or nothing."
)


_BY_STORY_NOTE: Final = Markup("""\
Passed counts trials, over all targets. Tools counts the expectations on tool calls that held: whether the model called
the right tools with the right arguments. Stand-ins, which follow fixed rules, are left out.""")

_HONESTY: Final = ("claimed, did", "claimed, did not", "not claimed, did", "not claimed, did not")
_HONESTY_NOTE: Final = Markup("""\
*Claimed*: the answer says, by published phrases, that something was saved, changed or forgotten. *Did*: the memory
itself, listed and searched before the turn and after it, shows it. *Claimed, did not* is a failure.""")

_ANSWERS_NOTE: Final = Markup("""\
A language model answered each question from the first k texts that came back, and a judge said whether that fits the
answer of the data. *Refused* says that it does not know, and counts as not right; *unclear* (no majority of the judge)
and *errors* count neither way. The scores of retrieval rest on none of it.""")

_JUDGES_NOTE: Final = Markup("""\
A language model that passed the exam said whether these answers fit the facts. No other number of this report has them:
no outcome, no comparison, no gate.""")

_WRONG: Final[Mapping[Outcome, str]] = {
    "failed": "failed",
    "error": "ended in an error before a judgement",
    "invalid": "not run because the story itself is wrong",
}


def lead(run: Run, columns: Sequence[Column]) -> str:
    """Return what the run came to, and its failures by harm, in a few sentences with marks of Markdown."""
    lost = sum(case.is_lost for case in run.cases)
    return " ".join(filter(None, [conclusion(run, lost), harms_in_words(causes(columns))]))


def conclusion(run: Run, lost: int) -> str:
    """Return what the run came to in a few sentences of markdown; `lost` of its cases have no result."""
    counts, cases = run.summary, sum(run.summary.values())
    ran = counts["passed"] + counts["failed"]
    wrong = [f"{counts[name]} {words}" for name in WORST_FIRST if (words := _WRONG.get(name)) and counts[name]]
    if not ran:
        first = f"**Nothing was judged** in {quantity(cases, 'case')}{': ' if wrong else ''}{', '.join(wrong)}."
    elif wrong:
        first = f"**Not everything passed**: {', '.join(wrong)}."
    else:
        first = f"**Every case that ran passed** ({ran} of {cases})."
    if counts["measured"]:
        first += f" {counts['measured']} measured: they only take scores and cannot fail."
    if counts["unsupported"]:
        first += f" {counts['unsupported']} unsupported: the target lacks something, and they prove nothing."
    if counts["exhausted"]:
        first += f" **The budget was spent**: {quantity(counts['exhausted'], 'case')} did not run, and prove nothing."
    if part := shard_name(run):
        first += f" **This is only {part}**: 'memstory merge' puts all of them together."
    if not run.complete:
        those = f"{cases - lost} of {quantity(cases, 'case')}"
        first += f" **The run was cut short**: {those} had ended by then, the others have no result."
    return first


def essential_section(columns: Sequence[Column]) -> Section:
    """Return who passed each essential story, and who talked in it: a stand-in where it was no language model."""
    cases = [(column.title, case) for column in columns for case in column.cases.values() if ESSENTIAL in case.tags]
    rows = []
    for story in sorted({case.name for _, case in cases}, key=natural):
        found = [(title, case) for title, case in cases if case.name == story]
        about = [case.deciding.recording.about for _, case in found if case.outcome in JUDGED and case.deciding]
        talks = sorted({one["chat"].removeprefix("shim: ") for one in about if "chat" in one})
        ended = [[title for title, case in found if case.outcome == outcome] for outcome in WORST_FIRST[::-1]]
        rows.append([story, found[0][1].title, *(", ".join(names) or DASH for names in (talks, *ended))])
    table = Table(["Story", "What it shows", "Who talks", *WORST_FIRST[::-1]], rows).without_empty_columns()
    return Section("The essential stories", where_any(table))


def shown_outcomes(columns: Sequence[Column | TargetTotals], always: Sequence[Outcome] = JUDGED) -> list[Outcome]:
    """Return the outcomes that totals show: those of `always`, and those that occurred."""
    return [name for name in OUTCOMES if name in always or any(one.counts[name] for one in columns)]


def totals_parts(columns: Sequence[Column | TargetTotals], changes: Mapping[str, str]) -> Sequence[Part]:
    """Return the totals by target, and of how many stories a recall is where it is not the same number of all."""
    of = {one.title: one.recall_stories for one in columns if one.recall_stories}
    counts = ", ".join(f"{title} {count}" for title, count in of.items())
    note = Note([Markup("R@5 is the mean over the judged stories that measure it, which are not the same: "), counts])
    return [totals_table(columns, changes), *([note] if len(set(of.values())) > 1 else [])]


def totals_table(columns: Sequence[Column | TargetTotals], changes: Mapping[str, str]) -> Table:
    """Return the totals by target; `changes` in words, if any."""
    is_judged = any(one.counts[name] for one in columns for name in JUDGED)
    outcomes = shown_outcomes(columns, JUDGED if is_judged else ())
    has_recall = any(one.recall is not None for one in columns)
    header = ["Target", *outcomes, *([Markup("R@5")] if has_recall else []), *(["since last run"] if changes else [])]
    rows = [
        [
            one.title,
            *(str(one.counts[name] or "") for name in outcomes),
            *(["" if one.recall is None else f"{one.recall:.2f}"] if has_recall else []),
            *([Markup(changes[one.title])] if changes else []),
        ]
        for one in columns
    ]
    return Table(header, rows, numbers=slice(1, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A case that both runs have, and that ended in another way."""

    case: str
    name: str
    target: str
    was: Outcome
    now: Outcome


def changes_since(last: Run | None, run: Run) -> list[Change]:
    """Return the cases that ended otherwise than in `last`, in the order of `run`; none if there is no last run."""
    before = {case.id: case for case in last.cases if not case.is_lost} if last else {}
    return [
        Change(case=case.id, name=case.name, target=case.target, was=before[case.id].outcome, now=case.outcome)
        for case in run.cases
        if case.id in before and before[case.id].outcome != case.outcome
    ]


def changes_by_target(last: Run | None, run: Run) -> dict[str, str]:
    """Return for each target a few words, such as `+2 -1`, `same`, `same, 3 new` or `new`; empty without a last run."""
    if last is None:
        return {}
    before = {case.id for case in last.cases if not case.is_lost}
    changes = changes_since(last, run)
    known = by_key((case.target, case.id in before) for case in run.cases)
    return {name: changes_in_words([one for one in changes if one.target == name], known[name]) for name in known}


def changes_section(changes: Sequence[Change]) -> Section:
    """Return the changes as a list, each with a link to its case; of very many the first."""
    items = [
        ListItem([CaseLink(one.case, one.name, one.target), " ", Sign(one.was), " → ", Sign(one.now)])
        for one in changes[:_CHANGES]
    ]
    if len(changes) > _CHANGES:
        items.append(ListItem(f"and {len(changes) - _CHANGES} more changes; the table of stories has all outcomes"))
    return Section("Changes since the last run", [Items(items)] if items else [])


def changes_in_words(changes: Sequence[Change], known: Sequence[bool]) -> str:
    """Return a few words for the changes of cases, each of which the last run had (`known`) or not.

    >>> changes_in_words([Change(case="S5[a]", name="S5", target="a", was="failed", now="passed")], [True, False])
    '+1, 1 new'
    >>> changes_in_words([], [True]), changes_in_words([], [False])
    ('same', 'new')
    """
    if not any(known):
        return "new"
    better, worse = sum(one.now == "passed" for one in changes), sum(one.was == "passed" for one in changes)
    others = len(changes) - better - worse
    signs = [f"{sign}{count}" for sign, count in (("+", better), ("-", worse), ("~", others)) if count]
    new = len(known) - sum(known)
    return (" ".join(signs) or "same") + (f", {new} new" if new else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Cases of one column that failed alike, or whose precondition failed; `reason` is that of the first.

    `harm` is `wrong` where the story names none, and `error` where a case did not show its harm.

    A story that could not be read is listed once, for the first column.
    """

    harm: str
    column: str
    outcome: Outcome
    reason: str
    cases: Sequence[CaseResult]


def causes(columns: Sequence[Column]) -> list[Cause]:
    """Return the failures and errors by cause, the worst harm first, then the largest.

    One fault of a memory often fails many stories, and a reader should see it once.
    """
    groups: dict[tuple[str, ...], dict[str, CaseResult]] = {}
    seen: set[str] = set()
    for column in columns:
        failed = {case.story: case for case in [*column.cases.values()][::-1] if case.outcome == "failed"}
        for case in column.cases.values():
            if case.outcome not in WRONG or (not case.target and case.id in seen):
                continue
            seen.add(case.id)
            root = _root(case, failed) if case.outcome == "failed" else case
            # What explains the others stands first.
            groups.setdefault((column.title, root.outcome, *_kind(root)), {root.id: root})[case.id] = case
    found = []
    for (title, *_), group in groups.items():
        first = next(iter(group.values()))
        harm = harm_of(first) if first.outcome == "failed" else "error"
        reason, cases = short_reason(first), tuple(group.values())
        found.append(Cause(harm=harm, column=title, outcome=first.outcome, reason=reason, cases=cases))
    return sorted(found, key=lambda one: (one.cases[0].severity, -len(one.cases), one.column))


def causes_section(found: Sequence[Cause]) -> Section:
    """Return the failures by cause, the worst harm first, with links to the first cases."""
    rows = []
    for cause in found:
        links = join_words(CaseLink(case.name or case.id, case.name, cause.column) for case in cause.cases[:_CASES])
        if len(cause.cases) > _CASES:
            links.append(Markup(f" and {len(cause.cases) - _CASES} more"))
        reason = one_line(cause.reason, REASON_LIMIT)
        rows.append([Badge(cause.harm), cause.column, reason, str(len(cause.cases)), links])
    table = Table(["Harm", "Target", "What happened", "n", "Cases"], rows, numbers=slice(3, 4))
    return Section("Failures by cause", where_any(table))


def harms_in_words(found: Sequence[Cause]) -> str:
    """Return the failures by harm, in the order of their causes, the worst first; empty if there is none.

    >>> harms_in_words([])
    ''
    """
    counts: Counter[str] = Counter()
    for cause in found:
        counts[cause.harm] += len(cause.cases)
    numbers = ", ".join(f"{count} {harm}" for harm, count in counts.items())
    return f"By harm: {numbers} ({quantity(len(found), 'cause')})." if found else ""


def harm_of(case: CaseResult) -> str:
    """Return what a failure of `case` does to a user."""
    return case.harm or "wrong"


def short_reason(case: CaseResult) -> str:
    """Return why `case` did not pass, without its place in the file and without the whole list of hits."""
    return _PLACE.sub("", case.reason or "no reason was given").partition("; the hits are: ")[0]


def _root(case: CaseResult, failed: Mapping[str, CaseResult]) -> CaseResult:
    """Return the case whose failure explains that of `case`: its precondition's, and so on; else itself.

    A leak is explained by nothing milder: a memory that hardly finds anything may give away what it finds.
    """
    seen = {case.story}
    while (found := failed.get(case.precondition or "")) is not None and found.story not in seen:
        if harm_of(case) == "leak" != harm_of(found):
            break
        seen.add(found.story)
        case = found
    return case


def _kind(case: CaseResult) -> tuple[str, ...]:
    """Return what is the same in all cases of one cause: the harm, what was asked for, the operation and the check.

    Two losses by the same check are two causes where the one is of many writes at once and the other of forgetting. An
    error has no check: what counts is how its message begins, values left out.
    """
    verdict = next((one for trial in case.trials for one in trial.verdicts if not one.passed), None)
    if verdict is None or case.outcome != "failed":
        return (*_VARIES.sub("…", short_reason(case)).split()[:_SAME_WORDS],)
    operations = {tuple(one.path): one.op for trial in case.trials for one in trial.times}
    about = next((name for name, group in GROUPS.items() if not group.tags.isdisjoint(case.tags)), OTHER)
    operation = operations.get(tuple(verdict.step), "")
    return harm_of(case), about, operation, verdict.field, verdict.check, verdict.kind or ""


@dataclass(frozen=True, slots=True)
class Group:
    """A story belongs to it by one of these tags, or because it needs one of these capabilities of its target.

    A need that ends in a dot stands for all that begin so.
    """

    tags: AbstractSet[str]
    needs: AbstractSet[str] = frozenset()

    def has(self, tags: Sequence[str], needs: Sequence[str]) -> bool:
        """Whether a story with these tags and needs belongs to it."""
        return not self.tags.isdisjoint(tags) or any(
            one in self.needs or f"{one.partition('.')[0]}." in self.needs for one in needs
        )


GROUPS: Final[Mapping[str, Group]] = {
    "recall": Group({"recall", "retrieval", "query", "limits", "list"}),
    "save and recall in conversation": Group({"window"}, {"chat"}),
    "ranking": Group({"ranking"}, {"rank.", "search.explain", "search.min_score", "feedback"}),
    "retrieval quality": Group({"quality"}),
    "texts and metadata": Group({"text", "metadata", "filter"}, {"search.where", "unicode_lexical"}),
    "update": Group(
        {"update", "merging", "contradiction", "dedup", "reconciliation"},
        {"update", "supersede", "dedup"},
    ),
    "forget": Group({"forget"}, {"delete", "delete."}),
    "expiry": Group({"expiry"}, {"expiry", "expiry."}),
    "isolation": Group({"isolation"}, {"scope."}),
    "durability": Group({"durability", "durable", "crash"}, {"restart", "crash", "persistent"}),
    "many at once": Group({"concurrency", "batch", "retry"}, {"add.batch_atomic"}),
    "when a part is down": Group({"faults"}, {"fault."}),
    "security": Group({"security"}, {"incognito", "audit_separate"}),
    "prompts and tools": Group({"prompt", "tools"}, {"context", "tool", "tool.schema", "search.budget"}),
}
"""The one definition; a story may be in several, and is in `other` if it is in none.

Only stories that at least two columns were asked are in groups; the rest are about one memory's own ways.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityScore:
    """One group of stories; `columns` counts for each column every outcome of those that were asked of it."""

    name: str
    stories: Sequence[str]
    columns: Mapping[str, Mapping[Outcome, int]]


def capability_scores(columns: Sequence[Column]) -> list[CapabilityScore]:
    """Return every group that has a story, all of them together first, and each column's own stories last."""
    cases = {story: case for column in columns for story, case in column.cases.items()}
    asked = Counter(story for column in columns for story in column.cases)
    members: dict[str, list[str]] = {name: [] for name in (EVERY, *GROUPS, OTHER, ALONE)}
    for story, case in cases.items():
        is_shared = asked[story] > 1 or len(columns) == 1
        names = (EVERY, *groups_of(case)) if is_shared else (ALONE,)
        for name in names:
            members[name].append(story)
    return [
        CapabilityScore(
            name=name,
            stories=stories,
            columns={
                one.title: outcome_counts(one.cases[story] for story in stories if story in one.cases)
                for one in columns
            },
        )
        for name, stories in members.items()
        if stories
    ]


def groups_of(case: CaseResult) -> Sequence[str]:
    """Return the groups that the story of a case is in: `other` if it is in none."""
    return _groups_of(tuple(case.tags), tuple(case.needs))


@lru_cache(1_000)
def _groups_of(tags: Sequence[str], needs: Sequence[str]) -> Sequence[str]:
    return tuple(name for name, group in GROUPS.items() if group.has(tags, needs)) or (OTHER,)


def capability_table(scores: Sequence[CapabilityScore], titles: Sequence[str], first: str, *, in_full: bool) -> Table:
    """Return passed of judged for each group of stories of which some were judged.

    `in_full` adds the percentage and what was not judged.
    """
    rows: list[Sequence[Words]] = [
        [
            score.name,
            str(len(score.stories)),
            *(_share_cell(score.columns[title], in_full=in_full) for title in titles),
        ]
        for score in scores
    ]
    said = [row for row in rows if any(cell not in ("", DASH) for cell in row[2:])]
    return Table([first, "stories", *titles], said, numbers=slice(1, None))


def capability_section(scores: Sequence[CapabilityScore], titles: Sequence[str], note: str = "") -> Section:
    """Return the same of a run as a section, under a `note` if there is one."""
    table = capability_table(scores, titles, "Capability", in_full=False)
    return Section("By capability", where_any(*([Note(note)] if note else []), table))


def _share_cell(counts: Mapping[Outcome, int], *, in_full: bool) -> str:
    """Return `9/12`, or in full `9/12 = 75%, 3 unsupported`: a dash there where nothing was asked."""
    judged = sum(counts[outcome] for outcome in JUDGED)
    share = counts["passed"] / judged if judged else None
    text = f"{counts['passed']}/{judged}" if judged else ""
    others = [f"{count} {outcome}" for outcome, count in counts.items() if count and outcome not in JUDGED]
    if in_full:
        percent = [f"{text} = {100 * counts['passed'] / judged:.0f}%"] if judged else []
        text = ", ".join([*percent, *others])
    return ShareCell(text, share, ", ".join(others)) if text or not in_full else DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligations:
    """What one memory was found to owe and to pay: obligations met and leaks avoided, which are never pooled.

    A memory that remembers nothing avoids every leak and meets no obligation. `kept` counts corrections by how they
    were kept.
    """

    judged: int
    met: int
    looked: int
    leaks: int
    unable: int
    broken: int
    kept: Mapping[str, int]

    def __add__(self, other: Obligations) -> Obligations:
        return Obligations(
            judged=self.judged + other.judged,
            met=self.met + other.met,
            looked=self.looked + other.looked,
            leaks=self.leaks + other.leaks,
            unable=self.unable + other.unable,
            broken=self.broken + other.broken,
            kept=Counter(self.kept) + Counter(other.kept),
        )

    @property
    def avoided(self) -> int:
        """How many stories left nothing that must be gone."""
        return self.looked - self.leaks

    @property
    def cells(self) -> Sequence[str]:
        """Return the cells under `OBLIGATIONS_HEADER`."""
        kept = [str(self.kept[name]) if self.kept else DASH for name in CORRECTION_OUTCOMES]
        return (
            _count_of(self.met, self.judged),
            _count_of(self.avoided, self.looked),
            str(self.unable),
            str(self.broken),
            *kept,
        )


def obligations_of(cases: Iterable[CaseResult]) -> Obligations | None:
    """Return what the cases of one target say; None where none is about it."""
    owed = [case for case in cases if OWED in case.tags]
    if not owed:
        return None
    counts = Counter(case.outcome for case in owed)
    judged = [case for case in owed if case.outcome in JUDGED]
    verdicts = [one for case in owed if case.deciding for one in case.deciding.verdicts]
    leaks = [case.leaked for case in judged if case.leaked is not None]
    return Obligations(
        judged=len(judged),
        met=counts["passed"],
        looked=len(leaks),
        leaks=sum(leaks),
        unable=counts["unsupported"],
        broken=counts["error"] + counts["invalid"],
        kept=Counter(one.kind for one in verdicts if one.kind and one.kind in CORRECTION_OUTCOMES),
    )


def obligations_by_column(columns: Sequence[Column]) -> Mapping[str, Obligations]:
    """Return what each column owes, where a story of it is about that."""
    return {column.title: found for column in columns if (found := obligations_of(column.cases.values()))}


def obligations_section(
    owed: Mapping[str, Obligations], first: str = "Target", *, begins_with_note: bool = False
) -> Section:
    """Return what each memory owes, first the one that meets most obligations and then leaks least."""
    ranked = sorted(owed.items(), key=lambda pair: (-pair[1].met, pair[1].leaks))
    rows = [[name, *found.cells] for name, found in ranked]
    table = Table([first, *OBLIGATIONS_HEADER], rows, numbers=slice(1, None)).without_empty_columns()
    note = Note(_OBLIGATIONS_NOTE)
    return Section("What a memory owes", where_any(note, table) if begins_with_note else where_any(table, note))


def obligation_changes(was: Run, now: Run) -> Iterator[str]:
    """Yield a line for each target whose scores are others now, over the cases that both runs have."""
    shared = {case.id for case in was.cases} & {case.id for case in now.cases}
    for target in targets_of(now):
        cases = ([case for case in run.cases if case.target == target and case.id in shared] for run in (was, now))
        before, after = map(obligations_of, cases)
        if before and after and before.cells[:2] != after.cells[:2]:
            scores = zip(OBLIGATIONS_HEADER[:2], after.cells, before.cells, strict=False)
            yield f"{target}: " + ", ".join(f"{name} {new} (before {old})" for name, new, old in scores)


def _count_of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStory:
    """How often a model passed a story, over all targets, and how many expectations on its tool calls held."""

    story: str
    model: str
    passed: Sequence[bool]
    tools: Sequence[bool]


def models_by_story(columns: Sequence[Column]) -> list[ModelStory]:
    """Return each story with each language model that talked in it."""
    passed: dict[tuple[str, str], list[bool]] = defaultdict(list)
    tools: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for case, trial in trials_of(columns):
        name = trial.recording.about.get("chat", STAND_IN).removeprefix("shim: ")
        talked = any(one.field in {"answer", "tool_calls", "honest"} for one in trial.verdicts)
        if STAND_IN not in name.lower() and talked and trial.outcome in {"passed", "failed"}:
            passed[case.name, name].append(trial.outcome == "passed")
            tools[case.name, name] += [one.passed for one in trial.verdicts if one.field == "tool_calls"]
    return [
        ModelStory(story=key[0], model=key[1], passed=passed[key], tools=tools[key])
        for key in sorted(passed, key=lambda key: (natural(key[0]), key[1]))
    ]


def stories_section(found: Sequence[ModelStory]) -> Section:
    """Return the models by story as a table, two columns a model."""
    names = sorted({one.model for one in found})
    cells = {
        (one.story, one.model): (_count_of(sum(one.passed), len(one.passed)), _count_of(sum(one.tools), len(one.tools)))
        for one in found
    }
    header = ["story", *(f"{name}: {what}" for name in names for what in ("passed", "tools"))]
    rows = [
        [story, *(cell for name in names for cell in cells.get((story, name), (DASH, DASH)))]
        for story in dict.fromkeys(one.story for one in found)
    ]
    table = Table(header, rows, numbers=slice(1, None))
    return Section("Language models by story", where_any(Note(_BY_STORY_NOTE), table))


def honesty(run: Run) -> Sequence[Part]:
    """Return targets by what their agents claimed and did; empty where no story asked for it."""
    counts: dict[str, Counter[str]] = {}
    for case in run.cases:
        kinds = [one.kind for trial in case.trials for one in trial.verdicts if one.field == "honest" and one.kind]
        if kinds:
            counts.setdefault(case.target, Counter()).update(kinds)
    rows = [[target, *(str(found[cell]) for cell in _HONESTY)] for target, found in sorted(counts.items())]
    return where_any(Table(["Target", *_HONESTY], rows, numbers=slice(1, None)), Note(_HONESTY_NOTE))


def question_answers(run: Run) -> Sequence[Part]:
    """Return how well a language model answered from what each memory found; empty where none was asked."""
    rows: list[Sequence[Words]] = []
    said = dict.fromkeys(
        case.deciding.recording.about["judge"]
        for case in run.cases
        if case.deciding and "answers" in case.deciding.recording.about
    )
    for case in run.cases:
        answered = [one.answer for one in case.retrieval[0].questions if one.answer] if case.retrieval else []
        if not answered or case.deciding is None:
            continue
        count = Counter(one.outcome for one in answered)
        judged = count["right"] + count["wrong"] + count["refused"]
        rate = wilson_interval(count["right"], judged) if judged else None
        share = f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]" if rate else DASH
        counts = (str(count[one]) for one in ("right", "wrong", "refused", "unclear", "error"))
        uses = [sum((one.model for one in answered), ModelUse()), sum((one.judge for one in answered), ModelUse())]
        model = case.deciding.recording.about["answers"]
        rows.append([case.name, case.target, share, *counts, model, *map(str, uses)])
    outcomes = ("right of judged", "right", "wrong", "refused", "unclear", "errors")
    header = ["Story", "Target", *outcomes, "model", "its use", "the judge's use"]
    return [*where_any(Table(header, rows, numbers=slice(2, 8)), Note(_ANSWERS_NOTE)), *(Note(one) for one in said)]


def judged_answers(run: Run) -> Sequence[Part]:
    """Return what judges said of answers; empty where none was asked."""
    verdicts = by_key(
        ((case.target, str(trial.recording.about.get("judge", ""))), one.passed)
        for case in run.cases
        for trial in case.trials
        for one in trial.verdicts
        if one.kind == "judged"
    )
    rows = [[target, str(sum(passed)), str(len(passed)), name] for (target, name), passed in sorted(verdicts.items())]
    table = Table(["Target", "Fit", "Judged", "Judge and its exam"], rows, numbers=slice(1, 3))
    return where_any(table, Note(_JUDGES_NOTE))
