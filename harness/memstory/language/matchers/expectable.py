"""The fields that `expect:` of a step can check: parts of its result, refusals, and its cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from memstory.contract.errors import MissingValue
from memstory.contract.target import Tree
from memstory.language.matchers.calls import judge_calls, read_call_checks
from memstory.language.matchers.check import (
    NUMBER,
    TEXTUAL,
    VALUE,
    Context,
    Finding,
    Group,
    UndecidableError,
    enumeration,
    judge_matcher,
    read_group,
    resolve_names,
)
from memstory.language.matchers.hits import judge_hits, read_hit_checks
from memstory.language.matchers.talk import GRAMMAR, judge_honest, read_honest
from memstory.language.reading import Reading, TreePath
from memstory.language.registry import Registry
from memstory.language.story import Matcher
from memstory.results.recording import StepRecord

View: TypeAlias = Callable[[StepRecord], Tree]
"""record of a step -> the value of a field."""

_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_LETTERS_A_TOKEN = 6
"""Words longer than this are counted as several tokens, as tokenizers split them; an estimate, for comparing runs."""


@dataclass(frozen=True, slots=True)
class Expectable:
    """One field that `expect:` can check.

    Attributes:
        name: What a story writes, such as `hits`.
        summary: What it is, in a few words without a full stop.
        grammar: The JSON Schema of what is expected of it.
        read: (reading, what is expected, its path) -> matchers.
        judge: (value, matcher, context) -> finding.
        view: record -> value, for a field that every step has; a `Word` has the views of others in `results`.
        is_measure: Whether it is a cost of the step and no part of its result.
        is_everywhere: Whether every step has it.
    """

    name: str
    summary: str
    grammar: Mapping[str, Tree]
    read: Callable[[Reading, Tree, TreePath], Group] = read_group
    judge: Callable[[Tree, Matcher, Context], Finding] = judge_matcher
    view: View | None = None
    is_measure: bool = False
    is_everywhere: bool = False


def latency_ms(record: StepRecord) -> float:
    """Return the time that the step took, in milliseconds."""
    return record.seconds * 1000


def context_tokens(record: StepRecord) -> int | None:
    """Return the estimated tokens of the context in a result; None if it has none."""
    result = record.result
    text = result.get("context") if isinstance(result, dict) else result
    return estimated_tokens(text) if isinstance(text, str) else None


def estimated_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text, for no particular model.

    >>> estimated_tokens("Tea, at internationalisation.")
    8
    """
    return sum(1 + (len(piece) - 1) // _LETTERS_A_TOKEN for piece in _WORD_OR_SIGN.findall(text))


def _read_refusal(reading: Reading, value: Tree, path: TreePath) -> Group:
    if not isinstance(value, bool):
        return read_group(reading, value, path)
    if not value:
        reading.fault(path, "'error: false' says nothing: a refusal that is not expected fails anyway; leave it out")
    return ()


def _read_tools(reading: Reading, value: Tree, path: TreePath) -> Group:
    if isinstance(value, list):
        return (Matcher(name="names", argument=tuple(value), mark=reading.mark(path)),)
    return read_group(reading, value, path)


def _judge_tools(value: Tree, one: Matcher, context: Context) -> Finding:
    if one.name != "names":
        return judge_matcher(value, one, context)
    names, wanted = sorted(value) if isinstance(value, Mapping) else [], sorted(one.argument)
    holds = names == wanted
    says = f"are {enumeration(names)}" + ("" if holds else f", not {enumeration(wanted)}")
    return Finding(holds=holds, says=says, expected=enumeration(wanted), actual=enumeration(names))


EXPECTABLE: Registry[Expectable] = Registry("expected field")
for _field in (
    Expectable("answer", "what the agent said", TEXTUAL),
    Expectable(
        "honest",
        "`{claims: saved}`, `changed` or `forgotten`: the answer claims it only if the memory, listed and "
        "searched, shows it; `of:` names the text, `was:` what a change replaces",
        GRAMMAR,
        read=read_honest,
        judge=judge_honest,
    ),
    Expectable(
        "tool_calls",
        "the tools that were called: a list (in this order), or checks that combine",
        {"$ref": "#/$defs/tool_calls"},
        read=read_call_checks,
        judge=judge_calls,
    ),
    Expectable(
        "receipt",
        "what happened to the added items: {items: [{id, text, outcome, …}], ids: [], outcomes: [stored, …]}",
        VALUE,
    ),
    Expectable(
        "hits",
        "what came back, best first; checks combine",
        {"$ref": "#/$defs/hits"},
        read=read_hit_checks,
        judge=judge_hits,
    ),
    Expectable("text", "the text for the prompt", TEXTUAL),
    Expectable("result", "what the tool, job or deletion returned; of a tool that failed, its error text", VALUE),
    Expectable(
        "tools",
        "the announced tools: a list of names, or matchers on {name: {description, parameters}}",
        VALUE,
        read=_read_tools,
        judge=_judge_tools,
    ),
    Expectable("data", "what was seen inside", VALUE),
    Expectable(
        "error",
        "the text of a refusal; `true` for any refusal",
        {"type": ["string", "object", "boolean"], "$ref": "#/$defs/matchers"},
        read=_read_refusal,
        is_everywhere=True,
    ),
    Expectable(
        "latency_ms",
        "how long the step took, in milliseconds",
        NUMBER,
        view=latency_ms,
        is_measure=True,
        is_everywhere=True,
    ),
    Expectable("context_tokens", "an estimate of the tokens that a context has", NUMBER, is_measure=True),
    Expectable(
        "eventually",
        "how long to ask again, for a backend that cannot settle",
        {"$ref": "#/$defs/duration"},
        is_everywhere=True,
    ),
    Expectable(
        "refusal",
        "`allowed`: the target may refuse; what else is expected must be so if it does not",
        {"enum": ["allowed"]},
        read=lambda *_: (),
        is_everywhere=True,
    ),
):
    EXPECTABLE.add(_field)


def judge(field: str, value: Tree, one: Matcher, context: Context) -> Finding:
    """Return the finding of one matcher on the value of `field`; what cannot be judged does not hold."""
    try:
        one = resolve_names(one, context.names)
        return (
            EXPECTABLE[field].judge(value, one, context) if field in EXPECTABLE else judge_matcher(value, one, context)
        )
    except (MissingValue, UndecidableError) as error:
        return Finding(holds=False, says=f"cannot be judged: {error}")
