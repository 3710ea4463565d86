"""Verdicts on a recording: on the steps of its story, the scores of its tasks, and leaks that no story asks about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from memstory.contract.target import ToolSchema, Tree
from memstory.language.matchers import Context, judge
from memstory.language.matchers.talk import NAME as JUDGED
from memstory.language.references import pick
from memstory.language.story import Expectation, Matcher, Step, Story
from memstory.language.words import WORDS
from memstory.language.words.memories import hits_of
from memstory.results.outcomes import OF_ANOTHER, Score, Verdict
from memstory.results.recording import Probe, Recording, RetrievalRecord, StepRecord
from memstory.results.runs import quantity
from memstory.tasks.perturbation import level_name

Owners: TypeAlias = Mapping[tuple[str, str], frozenset[str]]
"""Who was acknowledged a memory, by its id and text: some memories make the same id of the same text."""

_WRITES = ("add", "update")


def owners_of(records: Iterable[StepRecord]) -> Owners:
    """Return whose each memory is, as the receipts have it."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for record in records:
        for item in _items(record):
            if item.get("id") is not None:
                memory = item["id"], item["text"]
                found[memory] = found.get(memory, frozenset()) | {record.user}
    return found


def foreign_texts(record: StepRecord, owners: Owners) -> list[str]:
    """Return the texts among the hits of `record` that only other users were acknowledged."""
    if record.error is not None or "hits" not in WORDS[record.op].results:
        return []
    named = ((hit.get("id"), str(hit.get("text"))) for hit in hits_of(record))
    return [text for id_, text in named if record.user not in owners.get((id_, text), {record.user})]


def _items(record: StepRecord) -> Iterable[Mapping[str, Tree]]:
    if record.op not in _WRITES or not isinstance(record.result, Mapping):
        return ()
    items: Iterable[Mapping[str, Tree]] = record.result.get("items") or ()
    return items


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlace:
    """A step with the words for its place: `step 2 (say)`, or `step 2.1, pass 3 (add)` within a block."""

    step: Step
    label: str


def locate(story: Story, path: Sequence[int]) -> StepPlace | None:
    """Return the step at a recorded path, in which a block's index is followed by its pass; None if there is none."""
    steps, rest = story.steps, tuple(path)
    numbers: list[str] = []
    passes: list[str] = []
    while rest and rest[0] < len(steps):
        step, rest = steps[rest[0]], rest[1:]
        numbers.append(str(_index_of(step, steps) + 1))
        if not rest:
            passed = f", pass {'.'.join(passes)}" if passes else ""
            return StepPlace(step=step, label=f"step {'.'.join(numbers)}{passed} ({step.op})")
        if WORDS[step.op].is_loop:
            passes.append(str(rest[0] + 1))
            rest = rest[1:]
        steps = step.steps
    return None


def _index_of(step: Step, steps: Sequence[Step]) -> int:
    return next(index for index, one in enumerate(steps) if one is step)


def step_verdicts(story: Story, recording: Recording) -> tuple[Verdict, ...]:
    """Judge every step that was carried out, in the order of the story; of repeated attempts, the last one."""
    records = {tuple(record.path): record for record in recording.steps}
    contents: dict[str, str] = {}
    verdicts: list[Verdict] = []
    owners = owners_of(recording.steps)
    for path, record in records.items():
        place = locate(story, path)
        if place is None:
            continue
        contents.update(_saved_texts(place.step, record))
        is_cut = recording.failure is not None and tuple(recording.failure.step) == path
        step = _looked_at(place.step, record) if is_cut else place.step
        # Before what the step expects: whose memory it is says more than how many there are.
        verdicts += (
            _bare(place.step, record, "hits", OF_ANOTHER, f"hits have a memory of another user: {text!r:.60}")
            for text in foreign_texts(record, owners)
        )
        verdicts += _of_record(step, record, contents, recording.tools)
    if recording.failure is None:
        verdicts += _left_out(story, records)
    return tuple(verdicts)


def _looked_at(step: Step, record: StepRecord) -> Step:
    """Return a step without expectations of what was not looked at any more, where the target broke at its end."""
    expect = [
        replace(one, matchers=[check for check in one.matchers if check.name != JUDGED or record.judged])
        for one in step.expect
        if one.field != "honest" or record.witness
    ]
    return replace(step, expect=expect)


def holds(step: Step, record: StepRecord) -> bool:
    """Return whether all that `step` expects is so, for a runner that asks again until it is."""
    return all(verdict.passed for verdict in _of_record(step, record, _saved_texts(step, record), ()))


def _saved_texts(step: Step, record: StepRecord) -> dict[str, str]:
    """Map names that stand for ids to the texts beside them, for backends that give no ids."""
    texts = {}
    for name, path in step.save.items():
        if path.rpartition(".")[2] != "id":
            continue
        beside = f"{path.rpartition('.')[0]}.text".lstrip(".")
        text = pick(record.result, beside) or pick(record.args, beside)
        if isinstance(text, str):
            texts[name] = text
    return texts


def _left_out(story: Story, records: Mapping[tuple[int, ...], StepRecord]) -> Iterator[Verdict]:
    for index, step in enumerate(story.steps):
        if (index,) not in records:
            reason = "this step left no record, so it was not carried out"
            yield Verdict(
                passed=False, field="step", check="recorded", where=str(step.mark), reason=reason, step=(index,)
            )


def _of_record(
    step: Step, record: StepRecord, contents: Mapping[str, str], announced: Sequence[ToolSchema]
) -> Iterator[Verdict]:
    context = Context(names=record.names, contents=contents, judged=record.judged)
    refusal = WORDS[step.op].refusal(record)
    foreseen = any(expected.field in ("error", "refusal") for expected in step.expect)
    if record.error is not None and not foreseen:
        reason = f"was refused: {record.error}"
        yield _bare(step, record, "error", "refused", reason)
        return
    for expected in step.expect:
        if expected.field == "error":
            yield from _of_refusal(expected, record, refusal, context)
        elif record.error is None:
            yield from _of_field(step, expected, record, context)
    for field, check, fault in WORDS[step.op].faults(record, announced):
        yield _bare(step, record, field, check, fault)
    if record.probe is not None:
        yield from _of_probe(step, record, record.probe)


def _of_probe(step: Step, record: StepRecord, probe: Probe) -> Iterator[Verdict]:
    for one in probe.forbidden:
        places = ", ".join(one.found or probe.looked)
        says = f"{one.text!r:.60} is still in: {places}" if one.found else f"{one.text!r:.60} is not in: {places}"
        yield _of_text(step, record, "forbid", "absent", says, passed=not one.found)
    for text in probe.twins:
        is_lost = text in probe.lost
        says = f"{text!r:.60}, which nobody deleted, is {'no longer found' if is_lost else 'found'}"
        yield _of_text(step, record, "twin", "found", says, passed=not is_lost)


def _of_text(step: Step, record: StepRecord, field: str, check: str, says: str, *, passed: bool) -> Verdict:
    return Verdict(passed=passed, field=field, check=check, where=str(step.mark), reason=f"{field}: {says}",
                   step=record.path, actual=says)  # fmt: skip


def _of_refusal(expected: Expectation, record: StepRecord, refusal: str | None, context: Context) -> Iterator[Verdict]:
    if refusal is not None and expected.matchers:
        for matcher in expected.matchers:
            yield _verdict("error", refusal, matcher, record, context)
        return
    reason = "was not refused, and should have been" if refusal is None else f"was refused: {refusal}"
    yield Verdict(
        passed=refusal is not None,
        field="error",
        check="refused",
        where=str(expected.mark),
        reason=reason,
        step=record.path,
        expected="a refusal",
        actual=refusal or "no refusal",
    )


def _of_field(step: Step, expected: Expectation, record: StepRecord, context: Context) -> Iterator[Verdict]:
    value = WORDS[step.op].value(expected.field, record)
    for matcher in expected.matchers:
        yield _verdict(expected.field, value, matcher, record, context)


def _verdict(field: str, value: Tree, matcher: Matcher, record: StepRecord, context: Context) -> Verdict:
    found = judge(field, value, matcher, context)
    return Verdict(
        passed=found.holds,
        field=field,
        check=matcher.name,
        where=str(matcher.mark),
        reason=f"{field} {found.says}",
        step=record.path,
        expected=found.expected,
        actual=found.actual,
        difference=found.difference,
        kind=found.kind,
    )


def _bare(step: Step, record: StepRecord, field: str, check: str, reason: str) -> Verdict:
    return Verdict(passed=False, field=field, check=check, where=str(step.mark), reason=reason, step=record.path,
                   actual=reason)  # fmt: skip


def wanted_metrics(story: Story) -> tuple[str, ...]:
    """Return the metrics that the story has expectations on."""
    return tuple(dict.fromkeys(name for expected in story.expect for name in _groups(expected)))


def _groups(expected: Expectation) -> Mapping[str, Sequence[Matcher]]:
    groups: Mapping[str, Any] = expected.matchers[0].argument if expected.field == "metrics" else {}
    return groups


def score_verdicts(story: Story, recording: Recording, scores: Sequence[Score]) -> tuple[Verdict, ...]:
    """Judge the totals of every task that was recorded; categories are reported, not judged."""
    wanted = (
        verdict
        for task in recording.retrieval
        for expected in story.expect
        for verdict in _of_task(task, expected, scores)
    )
    return (*wanted, *(verdict for task in recording.retrieval for verdict in _surplus(story, task)))


def _surplus(story: Story, task: RetrievalRecord) -> Iterator[Verdict]:
    found = [question.surplus for question in task.questions if question.surplus]
    if found:
        reason = (
            f"{len(found)} of {len(task.questions)} searches gave more than k = {task.depth}, up to {max(found)} more"
        )
        yield Verdict(passed=False, field="retrieval", check="limit", where=str(story.mark), reason=reason)


def _of_task(task: RetrievalRecord, expected: Expectation, scores: Sequence[Score]) -> Iterator[Verdict]:
    level = f" at {level_name(task.level)}" if task.level else ""
    if expected.field == "latency_ms":
        seconds = [question.seconds for question in task.questions]
        value = 1000 * sum(seconds) / len(seconds) if seconds else None
        yield from (_score_verdict("latency_ms", f"latency_ms{level}", value, matcher) for matcher in expected.matchers)
    totals = {score.metric: score for score in scores if score.category is None and score.level == task.level}
    for name, group in _groups(expected).items():
        total = totals.get(name)
        for matcher in group:
            if total is None:
                yield Verdict(passed=False, field="metrics", check=name, where=str(matcher.mark),
                              reason=f"{name}{level} could not be measured: no question calls for it")  # fmt: skip
            else:
                subject = f"{name}{level} over {quantity(total.questions, 'question')}"
                yield _score_verdict(name, subject, round(total.value, 6), matcher)


def _score_verdict(check: str, subject: str, value: Tree, matcher: Matcher) -> Verdict:
    found = judge("metrics", value, matcher, Context())
    return Verdict(passed=found.holds, field="metrics", check=check, where=str(matcher.mark),
                   reason=f"{subject} {found.says}", expected=found.expected, actual=found.actual)  # fmt: skip
