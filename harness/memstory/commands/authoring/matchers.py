"""`memstory matchers`: everything that a story can assert about a result."""

from __future__ import annotations

import argparse

from memstory.commands.command import OK, Command, add_json
from memstory.commands.output import say, say_json, table
from memstory.language.matchers import CALL_CHECKS, HIT_CHECKS, HIT_FIELDS, MATCHERS, METRICS, Check
from memstory.language.registry import Registry


def _options(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.json:
        say_json({
            "matchers": _as_json(MATCHERS),
            "hits": _as_json(HIT_CHECKS),
            "tool_calls": _as_json(CALL_CHECKS),
            "hit_fields": list(HIT_FIELDS),
            "metrics": {name: one.summary for name, one in METRICS.items()},
        })  # fmt: skip
        return OK
    uncut = " and ".join(one.name for one in METRICS.values() if not one.is_cut)
    say("\n\n".join([
        "A plain value means 'equals'. Several matchers in one mapping must all hold.",
        _table("matcher", MATCHERS),
        _table("hits:", HIT_CHECKS),
        f"A hit is a saved name, or a mapping of matchers on {', '.join(HIT_FIELDS)}.",
        _table("tool_calls:", CALL_CHECKS),
        table(["metrics:", "meaning"], [[one.name, one.summary] for one in METRICS.values()], [None, 75]),
        f"All but {uncut} are cut at k: {{metrics: {{recall@5: {{ge: 0.9}}}}}}.",
    ]))  # fmt: skip
    return OK


def _table(header: str, checks: Registry[Check]) -> str:
    rows = [[one.name, one.summary, one.example] for one in checks.values()]
    return table([header, "holds if", "example"], rows, [None, 60, None])


def _as_json(checks: Registry[Check]) -> list[dict[str, str]]:
    return [{"name": one.name, "meaning": one.summary, "example": one.example} for one in checks.values()]


COMMAND = Command(
    about=(
        "List the matchers, the checks of hits and of tool calls, and the metrics of retrieval, each with an example."
    ),
    examples="""
examples:
  memstory matchers
  memstory matchers --json | jq -r '.matchers[].name'
""",
    exit_codes=f"exit codes: {OK} fine",
    options=_options,
    run=_run,
)
