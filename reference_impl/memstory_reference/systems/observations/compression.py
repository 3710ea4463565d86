"""A run's output to title, narrative and facts: by a language model, or by plain rules when its answer is unusable.

Seed 001 (PW-O-COMPRESS), O-16, OF-13, OF-14.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memstory_reference.systems.observations.observation import FEW_FACTS, MAX_FACT, MAX_FACTS
from memstory_reference.text.lines import json_objects, one_line, shorten

OUTPUT_CHARACTERS = 2000
READ_CHARACTERS = 100_000
"""How much of an output the rules read."""

MAX_NARRATIVE = 4_000
"""A narrative is two or three sentences; a page without a full stop is cut."""

TEMPERATURE = 0.1
PURPOSE = "compress"

_PROMPT = """\
You have just completed the following task:
Task: {task}
Output:
{output}
Produce a structured observation for storage in memory:
1. A one-line title describing the topic
2. A 2-3 sentence narrative of what was covered and what was concluded
3. 5-10 key facts as bullet points
Output as JSON: {"title": ..., "narrative": ..., "facts": [...]}"""

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+(.+)$", re.MULTILINE)
_LEADING_BULLET = re.compile(r"^[-*•–]\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is kept of an output; `warnings` say what was mended, `by` is `model` or `rules`."""

    title: str
    narrative: str
    facts: tuple[str, ...]
    by: str
    warnings: tuple[str, ...] = ()


def compression_prompt(task: str, output: str) -> str:
    """Return the prompt; exactly the first 2,000 characters of `output` are in it, whatever braces they hold."""
    head, tail = _PROMPT.split("{output}")
    return head.replace("{task}", task) + output[:OUTPUT_CHARACTERS] + tail


def parse_summary(reply: str) -> Summary | None:
    """Return the first usable JSON object in a model's reply, whether bare, fenced or amid prose; else None."""
    for candidate in json_objects(reply):
        title, narrative = candidate.get("title"), candidate.get("narrative")
        if not isinstance(narrative, str) or not narrative.strip():
            continue
        facts = _facts_of(candidate.get("facts"))
        return Summary(
            title=one_line(title) if isinstance(title, str) else "",
            narrative=one_line(narrative),
            facts=facts[:MAX_FACTS],
            by="model",
            warnings=_count_warnings(len(facts)),
        )
    return None


def summary_by_rules(task: str, output: str, *why: str) -> Summary:
    """Return a summary without a model: the task's first line, the first two sentences, the bullets or sentences."""
    output = output[:READ_CHARACTERS].encode("utf-8", "replace").decode()
    bullets = [text for bullet in _BULLET.findall(output) if (text := one_line(bullet))]
    prose = one_line(_BULLET.sub("", output)) or one_line(output)
    sentences = [sentence for sentence in _SENTENCE_END.split(prose) if sentence]
    facts = tuple(shorten(fact, MAX_FACT) for fact in (bullets or sentences)[: MAX_FACTS + 1])
    first_line = next((line for line in task.splitlines() if line.strip()), "")
    return Summary(
        title=one_line(first_line)[:120],
        narrative=shorten(" ".join(sentences[:2]) or one_line(task) or "An output without words.", MAX_NARRATIVE),
        facts=facts[:MAX_FACTS],
        by="rules",
        warnings=(*why, *_count_warnings(len(bullets or sentences[:MAX_FACTS]))),
    )


def _facts_of(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = _BULLET.findall(value) or value.splitlines()
    if not isinstance(value, list):
        return ()
    texts = (one_line(str(fact)) for fact in value if isinstance(fact, str | int | float))
    return tuple(_LEADING_BULLET.sub("", text) for text in texts if text)


def _count_warnings(count: int) -> tuple[str, ...]:
    if count > MAX_FACTS:
        return (f"{count} facts: the first {MAX_FACTS} were kept",)
    if count < FEW_FACTS:
        return (f"only {count} facts",)
    return ()
