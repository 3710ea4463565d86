"""What language models did: calls, tokens and seconds by step beside the score, and which model passes which story."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.contract.values import STAND_IN, ModelUse
from memstory.reporting.comparing.columns import Column
from memstory.results.outcomes import CaseResult, TrialResult
from memstory.results.runs import natural

CALLS_NOTE: Final = """\
What the memory asked of its model, and what the model asked that talks for it; embeddings are left out. Passed: stories
of judged ones with such calls. Tokens are as the server counts them, '-' where it counts none. A model named 'scripted'
is rules of the story and 'replayed' a recording: they cost nothing and say nothing about quality. Stand-ins make no
calls and are left out."""

BY_STORY_NOTE: Final = """\
Passed counts trials, over all targets. Tools counts the expectations on tool calls that held: whether the model called
the right tools with the right arguments. Stand-ins, which follow fixed rules, are left out."""

_ADD, _SEARCH = "add (retrieval)", "search (retrieval)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalls:
    """What `steps` steps of one kind cost in one column, which passed `passed` of `judged` stories with such calls."""

    column: str
    model: str
    passed: int
    judged: int
    step: str
    steps: int
    use: ModelUse


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStory:
    """How often a model passed a story, over all targets, and how many expectations on its tool calls held."""

    story: str
    model: str
    passed: Sequence[bool]
    tools: Sequence[bool]


def model_calls(columns: Sequence[Column]) -> list[ModelCalls]:
    """Return the calls of each column by model and step; nothing where no model was asked."""
    return [one for column in columns for one in _calls_of(column)]


def calls_table(found: Sequence[ModelCalls]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return header and rows."""
    header = ["target", "model", "passed", "step", "n", "calls", "failed", "tokens in", "tokens out", "seconds"]
    return header, [
        [one.column, one.model, f"{one.passed} of {one.judged}", one.step, str(one.steps), str(one.use.calls),
         str(one.use.failed), _number(one.use.prompt_tokens), _number(one.use.answer_tokens), f"{one.use.seconds:.2f}"]
        for one in found
    ]  # fmt: skip


def models_by_story(columns: Sequence[Column]) -> list[ModelStory]:
    """Return each story with each language model that talked in it."""
    passed: dict[tuple[str, str], list[bool]] = defaultdict(list)
    tools: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for case, trial in _trials(columns):
        name = trial.recording.about.get("chat", STAND_IN).removeprefix("shim: ")
        talked = any(one.field in {"answer", "tool_calls", "honest"} for one in trial.verdicts)
        if STAND_IN not in name.lower() and talked and trial.outcome in {"passed", "failed"}:
            passed[case.name, name].append(trial.outcome == "passed")
            tools[case.name, name] += [one.passed for one in trial.verdicts if one.field == "tool_calls"]
    return [
        ModelStory(story=key[0], model=key[1], passed=passed[key], tools=tools[key])
        for key in sorted(passed, key=lambda key: (natural(key[0]), key[1]))
    ]


def stories_table(found: Sequence[ModelStory]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return header and rows, two columns a model."""
    names = sorted({one.model for one in found})
    cells = {(one.story, one.model): (_share(one.passed), _share(one.tools)) for one in found}
    header = ["story", *(f"{name}: {what}" for name in names for what in ("passed", "tools"))]
    return header, [
        [story, *(cell for name in names for cell in cells.get((story, name), ("-", "-")))]
        for story in dict.fromkeys(one.story for one in found)
    ]


def _calls_of(column: Column) -> Iterator[ModelCalls]:
    uses: dict[tuple[str, str], list[ModelUse]] = defaultdict(list)
    stories: dict[str, dict[str, str]] = defaultdict(dict)
    for case, trial in _trials([column]):
        for step, use in _uses(trial):
            model = _model(trial.recording.about)
            uses[model, step].append(use)
            stories[model][case.id] = case.outcome
    for (model, step), found in sorted(uses.items()):
        outcomes = [*stories[model].values()]
        passed = outcomes.count("passed")
        yield ModelCalls(
            column=column.title, model=model, passed=passed, judged=passed + outcomes.count("failed"),
            step=step, steps=len(found), use=sum(found, ModelUse()),
        )  # fmt: skip


def _uses(trial: TrialResult) -> Iterator[tuple[str, ModelUse]]:
    yield from ((step.op, step.model) for step in trial.times if step.model)
    for record in trial.recording.retrieval:
        yield from [(_ADD, record.model)] if record.model else []
        yield from ((_SEARCH, asked.model) for asked in record.questions if asked.model)


def _model(about: Mapping[str, str]) -> str:
    """Return the model inside the memory, and the one that talks, as the target named them."""
    named = [about.get("infer", "off"), about.get("chat", STAND_IN).removeprefix("shim: ")]
    return " and ".join(name for name in named if name != "off" and STAND_IN not in name.lower()) or "not named"


def _trials(columns: Sequence[Column]) -> Iterator[tuple[CaseResult, TrialResult]]:
    yield from ((case, trial) for column in columns for case in column.cases.values() for trial in case.trials)


def _share(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}" if held else "-"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
