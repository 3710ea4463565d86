"""How well memories retrieved: scores by category, the cost of perturbations, and stories that only measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from memstory.language.matchers.means import BY_CUT
from memstory.reporting.document import (
    DASH,
    Fold,
    Items,
    ListItem,
    Markup,
    Note,
    Part,
    Table,
    Words,
    one_line,
    where_any,
)
from memstory.results.outcomes import CaseResult, Score
from memstory.results.recording import RetrievalRecord
from memstory.results.runs import Run, by_key, documents_of, quantity, questions_of
from memstory.scoring.metrics import reciprocal_rank
from memstory.scoring.statistics import paired_bootstrap
from memstory.tasks.perturbation import level_name

SCORE_COLUMNS: Final = {
    "recall@5": "R@5", "recall@10": "R@10", "ndcg@5": "nDCG@5", "ndcg@10": "nDCG@10", "mrr": "MRR",
}  # fmt: skip
ABSTENTION: Final = "abstention"

_SEED: Final = 0
_NO_CURVE: Final = ("precision@", "recall_all@")
_CURVES_NOTE: Final = Markup("""\
With and without perturbations: the brackets show the difference from the plain task of the same case. The last column
is the change of MRR with its 95% interval, over the same questions (paired bootstrap); where it holds 0,
nothing is shown.""")

HEADLINES: Final = ("macro_recall@", "recall@", "abstention")
"""What stands for a whole case, the first of these that it has; its k belongs behind an @."""

TOTALS: Final[Mapping[str, str]] = {
    "macro_recall@": "ALL, each category alike",
    "macro_ndcg@": "... and ranked high (nDCG)",
    "recall_all@": "... with all its memories found",
    "stale_share": "old value above the new (less is better)",
    "abstention_accuracy": "knows when it has no answer (.5 is chance)",
    "context_tokens": "tokens that came back for a question",
}
"""Metrics over all questions, and what the table calls them; the k of a story belongs behind an @."""

MEASURED_NOTE: Final = (
    "A number is the part of the memories answering a question that is among the first {k} that came back: 1 is best, "
    "chance is {chance:.3f}. It is the mean over the questions of that kind, their number in brackets; where nothing "
    "answers, the part of the questions for which nothing came back. Nothing is asked for here, so nothing has passed."
)
FIELD_NOTE: Final = (
    "The rows with @ are over all questions that are not apart, of the first {depth} that came back. What the field "
    "calls R@k, or recall_any@k, is success@k where a memory is a session: one session with an answer is enough. "
    "recall@k is the share of all that answer."
)
_NOTE_LIMIT: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One line of the retrieval table: a story on a target, at one level, for one category of questions."""

    story: str
    target: str
    level: str
    category: str | None
    apart: bool
    questions: int
    scores: Mapping[str, float]


def score_rows(case: CaseResult) -> Iterator[ScoreRow]:
    """Yield the retrieval scores of a case: for each level the total, the categories, then those kept apart."""
    apart = {name for record in case.retrieval for name in record.apart}
    groups = by_key(((level_name(score.level), score.category), score) for score in case.scores)
    levels = list(dict.fromkeys(level for level, _ in groups))
    for (level, category), scores in sorted(groups.items(), key=lambda item: _place(item[0], levels, apart)):
        yield ScoreRow(
            story=case.name,
            target=case.target,
            level=level,
            category=category,
            apart=category in apart,
            questions=_denominator(scores),
            scores={score.metric: score.value for score in scores},
        )


def fold_equal_rows(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return the rows with targets that scored alike in one, `layers, topics`; a story's rows stay together."""
    alike = by_key((_alike(row), row) for row in rows)
    return [replace(same[0], target=", ".join(row.target for row in same)) for same in alike.values()]


def _alike(row: ScoreRow) -> tuple[object, ...]:
    scores = tuple((name, f"{value:.3f}") for name, value in sorted(row.scores.items()))
    return row.story, row.level, row.category, row.questions, scores


def _denominator(scores: Sequence[Score]) -> int:
    """Return the number of questions behind the usual ones; abstention has separate questions."""
    counts = {score.metric: score.questions for score in scores}
    usual = [counts[metric] for metric in SCORE_COLUMNS if metric in counts]
    return max(usual or counts.values())


def _place(group: tuple[str, str | None], levels: Sequence[str], apart: set[str]) -> tuple[int, bool, bool, str]:
    level, category = group
    return (levels.index(level), category is not None, category in apart, category or "")


def retrieval(run: Run) -> Sequence[Part]:
    """Return the scores of all cases that retrieved, and what they were measured on; empty if none did."""
    if not any(case.retrieval for case in run.cases):
        return []
    data = [*_data_lines(run), *_turn_lines(run)]
    return [*score_table(run), *curves(run), *([Items(data)] if data else []), *_unusable(run)]


def score_table(run: Run) -> Sequence[Part]:
    """Return the scores of the stories that are judged; those that only measure have their own tables."""
    rows = fold_equal_rows([row for case in run.cases if case.outcome != "measured" for row in score_rows(case)])
    usual = SCORE_COLUMNS | {ABSTENTION: ABSTENTION}
    columns = {name: title for name, title in usual.items() if any(name in row.scores for row in rows)}
    has_levels = any(row.level for row in rows)
    header = ["Story", "Target", *(["Level"] if has_levels else []), "Questions", "n", *map(Markup, columns.values())]
    cells: list[Sequence[Words]] = [
        [
            row.story,
            row.target,
            *([row.level] if has_levels else []),
            _category(row),
            str(row.questions),
            *(f"{row.scores[name]:.3f}" if name in row.scores else DASH for name in columns),
        ]
        for row in rows
    ]
    return where_any(Table(header, cells, numbers=slice(-1 - len(columns), None)))


def _category(row: ScoreRow) -> Words:
    if row.category is None:
        return Markup("**total**")
    return [row.category, Markup(" *(apart)*")] if row.apart else row.category


def _data_lines(run: Run) -> Iterator[ListItem]:
    """Yield a line for each set of data, not for each target that was measured on it."""
    stories: dict[tuple[str, str, str], list[str]] = {}
    for case in run.cases:
        for record in case.retrieval:
            left_out = sum(not asked.judged for asked in record.questions)
            size = f": {documents_of(record)}, the first {record.k} hits of {questions_of(record)}" + (
                f" ({left_out} without a usable label are not judged)" if left_out else ""
            )
            stories.setdefault((record.name, size, record.digest[:12]), []).append(case.name)
    for (name, size, digest), names in stories.items():
        yield ListItem([", ".join(dict.fromkeys(names)), Markup(" on "), name, Markup(f"{size}, data "), digest])


def _turn_lines(run: Run) -> Iterator[ListItem]:
    """Yield for each dialogue which targets got its speakers, sessions and dates as fields, and which as text."""
    targets = by_key(
        ((record.name, record.as_turns), case.target)
        for case in run.cases
        for record in case.retrieval
        if record.as_turns is not None
    )
    for (name, as_turns), names in targets.items():
        form = "as fields" if as_turns else "in the text alone"
        yield ListItem([name, Markup(f": speaker, session and date {form} for "), ", ".join(dict.fromkeys(names))])


def _unusable(run: Run) -> Iterator[Fold]:
    labels = {record.name: record.unusable for case in run.cases for record in case.retrieval}
    for name, unusable in labels.items():
        if unusable:
            title = Markup(f": labels that could not be used and are left out ({len(unusable)})")
            yield Fold([name, title], [Items([ListItem(label) for label in unusable])])


def curves(run: Run) -> Sequence[Part]:
    """Return for each perturbed story its scores level by level, with an interval on what each level costs."""
    perturbed = (case for case in run.cases if len({level_name(score.level) for score in case.scores}) > 1)
    stories = by_key((case.name, case) for case in perturbed)
    tables = [part for name, cases in stories.items() for part in (_title(name), _curve_table(cases))]
    return [Note(_CURVES_NOTE), *tables] if tables else []


def _title(text: str) -> Note:
    return Note([Markup("**"), text, Markup("**")])


def _curve_table(cases: Sequence[CaseResult]) -> Table:
    metrics = dict.fromkeys(
        score.metric
        for case in cases
        for score in case.scores
        if score.category is None and not score.metric.startswith(_NO_CURVE)
    )
    header = ["Target", "Level", *metrics, "MRR change"]
    return Table(header, [row for case in cases for row in _curve(case, list(metrics))], numbers=slice(2, None))


def _curve(case: CaseResult, metrics: Sequence[str]) -> Iterator[list[str]]:
    totals: dict[str, dict[str, float]] = {}
    for score in case.scores:
        if score.category is None:
            totals.setdefault(level_name(score.level), {})[score.metric] = score.value
    plain = next(iter(totals.values()))
    ranks = {level_name(record.level): _reciprocal_ranks(record) for record in case.retrieval}
    for level, values in totals.items():
        yield [
            case.target,
            level,
            *(_with_change(values.get(name), None if values is plain else plain.get(name)) for name in metrics),
            "" if values is plain else _mrr_change(ranks.get(next(iter(totals)), {}), ranks.get(level, {})),
        ]


def _with_change(value: float | None, plain: float | None) -> str:
    if value is None:
        return DASH
    return f"{value:.3f}" if plain is None else f"{value:.3f} ({value - plain:+.3f})"


def _reciprocal_ranks(record: RetrievalRecord) -> Mapping[str, float]:
    """Return the mean reciprocal rank of each question over its variants `question~1`, `question~2`."""
    has_variants = bool(record.level.get("paraphrase"))
    found = by_key(
        ((has_variants and asked.id.rpartition("~")[0]) or asked.id, reciprocal_rank(asked.retrieved, asked.relevant))
        for asked in record.counted
        if asked.relevant
    )
    return {name: fmean(values) for name, values in found.items()}


def _mrr_change(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    both = [name for name in before if name in after]
    if not both:
        return DASH
    change = paired_bootstrap([before[name] for name in both], [after[name] for name in both], seed=_SEED)
    return Markup(f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStory:
    """A story that only measures: a row for each category, a column for each target, the best first.

    `categories` says how many rows are categories; the totals follow them.
    """

    title: str
    table: Table
    notes: Sequence[str]
    categories: int = 0


def headline_score(case: CaseResult) -> str:
    """Return what a case that was measured came to in a few words."""
    name = next((name for name in _with_k(HEADLINES, case) if name in case.metrics), None)
    return f"{name} {case.metrics[name]:.3f}" if name else case.reason or "nothing"


def score_tables(run: Run) -> Sequence[Part]:
    """Return the tables of what was only measured."""
    parts: list[Part] = []
    for story in measured_stories(run):
        parts += [_title(story.title), story.table, *(Note(one_line(note, _NOTE_LIMIT)) for note in story.notes)]
    return parts


def measured_stories(run: Run) -> Iterator[MeasuredStory]:
    """Yield each story that was measured, at each of its levels; last what held in stories that measure by steps."""
    stories = by_key(
        ((case.name, level), case)
        for case in run.cases
        if case.outcome == "measured"
        for level in dict.fromkeys(level_name(score.level) for score in case.scores)
    )
    for (_, level), cases in stories.items():
        yield _measured_story(level, sorted(cases, key=lambda case: -_rank(case, level)))
    if steps := [case for case in run.cases if case.outcome == "measured" and not case.retrieval]:
        yield _measured_steps(steps)


def recall_name(case: CaseResult) -> str:
    """Return the recall of a case among all that came back; empty if it retrieved nothing."""
    return f"recall@{case.retrieval[0].k}" if case.retrieval else ""


def is_no_better_than_chance(case: CaseResult, level: str = "") -> bool:
    """Return whether a memory found no more than one that draws memories at random, by the low end of its interval."""
    score = _total(case, level, recall_name(case))
    return score is not None and (score.value if score.low is None else score.low) <= _chance(case, level)


def _measured_story(level: str, cases: Sequence[CaseResult]) -> MeasuredStory:
    record = _record(cases[0], level)
    by_chance = [case.target for case in cases if is_no_better_than_chance(case, level)]
    categories = sorted({score.category for case in cases for score in _scores_at(case, level) if score.category})
    kinds = _rows_with_numbers(_category_row(category, level, cases) for category in categories)
    totals = _rows_with_numbers(_total_row(begin, title, level, cases) for begin, title in TOTALS.items())
    cuts = _rows_with_numbers(_cut_row(name, level, cases) for name in _cut_names(record))
    notes = [
        MEASURED_NOTE.format(k=record.k, chance=_chance(cases[0], level)),
        *([FIELD_NOTE.format(depth=record.depth)] if cuts else []),
    ]
    notes += record.notes
    if by_chance:
        notes.append(f"* no better than chance: {', '.join(by_chance)}")
    size = quantity(record.documents, "memory") if record.preloaded is None else documents_of(record)
    at = f", {level}" if level and level != "plain" else ""
    header = ["questions", *(f"{case.target}{'*' if case.target in by_chance else ''}" for case in cases)]
    return MeasuredStory(
        title=f"{cases[0].name}: {cases[0].title}{at} ({size})",
        table=Table(header, [*kinds, *totals, *cuts], numbers=slice(1, None)),
        notes=notes,
        categories=len(kinds),
    )


def _cut_names(record: RetrievalRecord) -> Sequence[str]:
    """Return the metrics at each k of a task that has several, and MRR."""
    cuts = sorted({record.k, *record.cuts}) if record.cuts else ()
    return [*(f"{name}@{k}" for name in BY_CUT for k in cuts), *(["mrr"] if cuts else [])]


def _cut_row(name: str, level: str, cases: Sequence[CaseResult]) -> list[str]:
    found = [_total(case, level, name) for case in cases]
    word, _, k = name.partition("@")
    is_of_sessions = _record(cases[0], level).name.endswith("-session")
    field = f" (the field's R@{k})" if word == "success" and is_of_sessions else ""
    return [f"{name}{field}", *map(_exact_cell, found)]


def _exact_cell(score: Score | None) -> str:
    if score is None:
        return DASH
    between = "" if score.low is None else f" [{score.low:.3f}, {score.high:.3f}]"
    return f"{score.value:.3f}{between}"


def _rows_with_numbers(rows: Iterable[list[str]]) -> list[list[str]]:
    return [row for row in rows if any(cell not in {"", "-"} for cell in row[1:])]


def _measured_steps(cases: Sequence[CaseResult]) -> MeasuredStory:
    """Return how many expectations held in stories that measure by steps."""
    targets = sorted({case.target for case in cases})
    verdicts = {
        (case.title, case.target): [one.passed for trial in case.trials for one in trial.verdicts] for case in cases
    }
    titles = list(dict.fromkeys(case.title for case in cases))
    rows = [[title, *(_part(verdicts.get((title, target), [])) for target in targets)] for title in titles]
    totals = [_part([one for (_, of), some in verdicts.items() if of == target for one in some]) for target in targets]
    return MeasuredStory(
        title="What held of what stories tell to an agent and expect of it later",
        table=Table(["story", *targets], [*rows, ["ALL", *totals]], numbers=slice(1, None)),
        notes=["A cell is how many expectations held, of how many. Nothing is asked for here, so nothing has passed."],
    )


def _part(verdicts: Sequence[bool]) -> str:
    return f"{sum(verdicts)}/{len(verdicts)}" if verdicts else DASH


def _category_row(category: str, level: str, cases: Sequence[CaseResult]) -> list[str]:
    recall = recall_name(cases[0])
    found = [{one.metric: one for one in _scores_at(case, level, category)} for case in cases]
    metric = recall if any(recall in scores for scores in found) else ABSTENTION
    count = max((scores[metric].questions for scores in found if metric in scores), default=0)
    return [f"{category.replace('_', ' ')} ({count})", *(_score_cell(scores.get(metric)) for scores in found)]


def _total_row(begin: str, title: str, level: str, cases: Sequence[CaseResult]) -> list[str]:
    (name,) = _with_k([begin], cases[0])
    return [title, *(_score_cell(_total(case, level, name)) for case in cases)]


def _score_cell(score: Score | None) -> str:
    if score is None:
        return DASH
    value = f"{score.value:.0f}" if score.metric == "context_tokens" else f"{score.value:.2f}"
    has_interval = score.low is not None and score.metric.startswith("macro_recall")
    return f"{value} [{score.low:.2f}, {score.high:.2f}]" if has_interval else value


def _total(case: CaseResult, level: str, metric: str) -> Score | None:
    """Return the score of a case by a metric over all categories; None where it has none."""
    return next((one for one in _scores_at(case, level, None) if one.metric == metric), None)


def _scores_at(case: CaseResult, level: str, *category: str | None) -> list[Score]:
    return [
        one for one in case.scores if level_name(one.level) == level and (not category or one.category == category[0])
    ]


def _rank(case: CaseResult, level: str) -> float:
    totals = (_total(case, level, name) for name in _with_k(HEADLINES, case))
    return next((one.value for one in totals if one), 0.0)


def _with_k(metrics: Iterable[str], case: CaseResult) -> list[str]:
    """Return names of metrics with the k of a case behind the @ with which some end."""
    k = case.retrieval[0].k if case.retrieval else 0
    return [f"{name}{k}" if name.endswith("@") else name for name in metrics]


def _record(case: CaseResult, level: str) -> RetrievalRecord:
    return next(one for one in case.retrieval if level_name(one.level) == level)


def _chance(case: CaseResult, level: str) -> float:
    record = _record(case, level)
    # Of a memory that does not say how much it holds, nothing is by chance.
    return min(1.0, record.k / record.documents) if record.documents or record.preloaded is None else 0.0
