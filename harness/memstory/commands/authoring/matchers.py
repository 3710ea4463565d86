"""`memstory matchers`: everything that can be said of a result."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from memstory.commands.authoring import examples
from memstory.commands.command import OK, Command, add_json
from memstory.commands.output import say, say_json, table
from memstory.language.vocabulary import CALL_CHECKS, HIT_CHECKS, HIT_FIELDS, MATCHERS, METRICS

_MATCHER_EXAMPLES = {name: written for name, (written, _, _) in examples.MATCHERS.items()}


def _options(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    if chosen.json:
        say_json({
            "matchers": _as_json(MATCHERS, _MATCHER_EXAMPLES),
            "hits": _as_json(HIT_CHECKS, examples.HIT_CHECKS),
            "tool_calls": _as_json(CALL_CHECKS, examples.CALL_CHECKS),
            "hit_fields": list(HIT_FIELDS),
            "metrics": dict(METRICS),
        })  # fmt: skip
        return OK
    say("\n\n".join([
        "A plain value means 'equals'. Several matchers in one mapping must all hold.",
        _table("matcher", MATCHERS, _MATCHER_EXAMPLES),
        _table("hits:", HIT_CHECKS, examples.HIT_CHECKS),
        f"A hit is a saved name, or a mapping of matchers on {', '.join(HIT_FIELDS)}.",
        _table("tool_calls:", CALL_CHECKS, examples.CALL_CHECKS),
        table(["metrics:", "meaning"], [[name, text] for name, text in METRICS.items()], [None, 75]),
        "All but mrr and abstention are cut at k: {metrics: {recall@5: {ge: 0.9}}}.",
    ]))  # fmt: skip
    return OK


def _table(header: str, words: Mapping[str, str], shown: Mapping[str, str]) -> str:
    return table([header, "holds if", "example"], [[name, text, shown[name]] for name, text in words.items()],
                 [None, 60, None])  # fmt: skip


def _as_json(words: Mapping[str, str], shown: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "meaning": text, "example": shown[name]} for name, text in words.items()]


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
