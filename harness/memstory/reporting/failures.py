"""The part of report.md on cases that did not pass: what was expected, what happened, and why others could not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.reporting import views
from memstory.reporting.escaping import fenced, inline, table
from memstory.target import Json

TITLES: Final = {"failed": "Failures", "error": "Errors", "invalid": "Invalid stories"}
DETAIL_LIMIT: Final = 6000


def went_wrong(document: Json) -> str:
    """Return a section for each outcome that somebody has to act on; empty if there is none."""
    sections = []
    for outcome, title in TITLES.items():
        cases = views.with_outcome(document, outcome)
        if cases:
            sections.append("\n\n".join([f"## {title}", *(_case(case) for case in cases)]))
    return "\n\n".join(sections)


def could_not_run(document: Json) -> str:
    """Return the unsupported cases, grouped by their reason."""
    cases: dict[str, list[str]] = {}
    for case in views.with_outcome(document, "unsupported"):
        cases.setdefault(case["reason"] or "no reason was given", []).append(case["id"])
    rows = [[inline(reason), str(len(names)), inline(", ".join(names))] for reason, names in cases.items()]
    return table(["Why", "Cases", "Which"], rows, right=[1]) if rows else ""


def _case(case: Json) -> str:
    title = f"### {views.SYMBOLS[case['outcome']]} {inline(case['id'])}: {inline(case['title'] or views.UNREADABLE)}"
    verdicts = [verdict for verdict in case["verdicts"] if not verdict["passed"]]
    parts = [title, *_reason(case, verdicts)]
    if rate := case["rate"]:
        parts.append(
            f"Passed {rate['passed']} of {rate['trials']} judged trials"
            f" (95% interval {rate['low']:.2f} to {rate['high']:.2f}); shown is trial {case['shown'] + 1}."
        )
    steps = {tuple(step["path"]): step for step in case["steps"]}
    parts += [_verdict(verdict, steps) for verdict in verdicts]
    if happened := "\n".join(_happened(case)):
        parts.append(f"What the agent did:\n\n{happened}")
    if detail := (case.get("failure") or {}).get("detail"):
        block = fenced(detail, DETAIL_LIMIT)
        parts.append(f"<details><summary>Details</summary>\n\n{block}\n\n</details>")
    return "\n\n".join(parts)


def _reason(case: Json, verdicts: Sequence[Json]) -> Iterator[str]:
    """Yield place and reason, unless the verdicts that follow say the same."""
    where, reason = case["where"], case["reason"] or "no reason was given"
    if any(verdict["reason"] and verdict["reason"] in reason for verdict in verdicts):
        return
    # A reason that names a place in the story's file has the better place.
    has_place = reason.startswith(f"{where.split(':')[0]}:")
    yield inline(reason) if has_place else f"{inline(where)} — {inline(reason)}"


def _verdict(verdict: Json, steps: Mapping[tuple[int, ...], Json]) -> str:
    path = tuple(verdict["step"])
    step = f"step {views.step_number(path)}" if path else "the story as a whole"
    operation = f" ({inline(steps[path]['op'])})" if path in steps else ""
    lines = [f"- {inline(verdict['where'])}, {step}{operation}: {inline(verdict['reason'])}"]
    compared = (name for name in ("expected", "actual") if verdict[name] is not None)
    lines += [f"  - {name}: {inline(verdict[name])}" for name in compared]
    if verdict["difference"]:
        lines.append("\n" + _indented(fenced(verdict["difference"])))
    return "\n".join(lines)


def _happened(case: Json) -> Iterator[str]:
    """Yield the answers and tool calls of a failed case, in order."""
    for step in case["steps"]:
        number, result = views.step_number(step["path"]), step["result"]
        if step["op"] == "say" and isinstance(result, dict):
            yield f"- step {number}, said: {inline(step['args'].get('text', ''))}"
            yield from (f"  - called {_call(call)}" for call in result.get("tool_calls") or ())
            yield f"  - answered: {inline(result.get('answer') or '(nothing)')}"
        elif step["op"] == "tool" and isinstance(result, dict):
            yield f"- step {number}, called {_call(result)}"


def _call(call: Json) -> str:
    args = ", ".join(f"{name}={value!r}" for name, value in call.get("args", {}).items())
    error = call.get("error")
    outcome = f"error: {inline(error)}" if error else inline(call.get("result"))
    return f"{inline(call.get('name', '?'))}({inline(args)}) → {outcome}"


def _indented(block: str) -> str:
    return "\n".join(f"  {line}" for line in block.split("\n"))
