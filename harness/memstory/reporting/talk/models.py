"""The part of report.md on language models that talk: which passes which story, and calls its tools rightly."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.results.runs import Run, natural

_EXPLAINED: Final = """\
*Passed* counts trials, over all targets. *Tools* counts the expectations on tool calls that held: whether the model
called the right tools with the right arguments. Stand-ins, which follow fixed rules, are left out."""


def models(run: Run) -> str:
    """Return a table of models by story; empty where no language model talked."""
    passed: dict[tuple[str, str], list[bool]] = defaultdict(list)
    tools: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for case in run.cases:
        for trial in case.trials:
            name = trial.recording.about.get("chat")
            talked = any(one.field in {"answer", "tool_calls", "honest"} for one in trial.verdicts)
            if (
                name is None
                or views.STAND_IN in name.lower()
                or not talked
                or trial.outcome not in {"passed", "failed"}
            ):
                continue
            passed[case.name, name].append(trial.outcome == "passed")
            tools[case.name, name] += [one.passed for one in trial.verdicts if one.field == "tool_calls"]
    names = sorted({name for _, name in passed})
    stories = sorted({story for story, _ in passed}, key=natural)
    rows = [
        [inline(story)] + [cell for name in names for cell in (_of(passed, story, name), _of(tools, story, name))]
        for story in stories
    ]
    header = ["Story", *(f"{inline(name)}: {what}" for name in names for what in ("passed", "tools"))]
    return f"{table(header, rows, right=range(1, len(header)))}\n\n{_EXPLAINED}" if rows else ""


def _of(found: dict[tuple[str, str], list[bool]], story: str, name: str) -> str:
    held = found.get((story, name))
    return f"{sum(held)} of {len(held)}" if held else "-"
