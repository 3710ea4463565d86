"""The words of the story language: steps with the fields of their results, matchers, checks of hits and tool calls.

The grammar is `story.schema.json`; this table says what its words mean to the runner and to evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWord:
    """What a step does, what its expectations may speak of, and what its normalised arguments are."""

    summary: str
    fields: tuple[str, ...] = ()
    args: str = ""


_QUERY = "query, kinds?, top_k?, min_score?, token_budget?, where?, options?"
_REF = "id? or key?, kind?"

STEPS: Mapping[str, StepWord] = {
    "say": StepWord(summary="one conversational turn", fields=("answer", "tool_calls"), args="text"),
    "add": StepWord(
        summary="remember one text or several", fields=("receipt",), args="items: [{text, key?, kind?, metadata?}]"
    ),
    "get": StepWord(summary="look one memory up by id or key", fields=("hits",), args=_REF),
    "search": StepWord(summary="ranked retrieval", fields=("hits",), args=_QUERY),
    "list": StepWord(summary="enumerate memories", fields=("hits",), args="kinds?, limit?"),
    "update": StepWord(
        summary="replace what a memory says", fields=("receipt",), args="id? or key?, text, kind?, metadata?"
    ),
    "delete": StepWord(summary="forget one memory, or with `all` every one", fields=("result",), args=_REF),
    "feedback": StepWord(summary="rate a memory", fields=("result", "receipt"), args=f"{_REF}, value"),
    "context": StepWord(summary="the text that the memory would put into a prompt", fields=("text",), args=_QUERY),
    "tool": StepWord(summary="call a tool as any agent may", fields=("result",), args="name, args, caller?"),
    "tools": StepWord(summary="the tools that are announced to a language model", fields=("tools",)),
    "run": StepWord(summary="run a maintenance job", fields=("result",), args="job, args"),
    "inspect": StepWord(
        summary="look inside; `files` lists the workspace, without the target's help",
        fields=("data",),
        args="what, since?, args; for files: search_for (texts that no file may hold)",
    ),
    "new_session": StepWord(summary="go on in a new session", args="name?"),
    "end_session": StepWord(summary="end the session", args="reason"),
    "settle": StepWord(summary="wait until all background work is done"),
    "at": StepWord(summary="set the clock", args="moment (ISO 8601, UTC)"),
    "advance": StepWord(summary="let time pass", args="microseconds (integer)"),
    "restart": StepWord(summary="close and open again"),
    "crash": StepWord(summary="kill and open again; `during` steps are in flight when it happens"),
    "fault": StepWord(summary="make a part fail from now on", args="part, mode"),
    "parallel": StepWord(summary="do the inner steps several times at once, with ${i} from 0", args="times"),
    "repeat": StepWord(summary="do the inner steps several times, with ${i} from 0", args="times"),
}

MODIFIERS: Mapping[str, str] = {
    "as": "the user who acts",
    "session": "the session in which it happens",
    "save": "names for parts of the result: {name: field}",
    "expect": "what the result must be",
}

ANY_STEP_FIELDS: Mapping[str, str] = {
    "error": "the text of a refusal; `true` for any refusal",
    "latency_ms": "how long the step took, in milliseconds",
    "context_tokens": "an estimate of the tokens that a context has",
    "eventually": "how long to ask again, for a backend that cannot settle",
    "refusal": "`allowed`: the target may refuse; what else is expected must be so if it does not",
}
"""`latency_ms`, `error` and `refusal` go with every step, `context_tokens` with `say` and `context`."""

MATCHERS: Mapping[str, str] = {
    "equals": "is exactly this value; 1 equals 1.0, but true is not 1",
    "contains": "text: has this substring; list: has this element; mapping: has this key",
    "icontains": "contains, whatever the case of letters",
    "contains_all": "contains each of these",
    "contains_any": "contains at least one of these",
    "regex": "text: the pattern is found somewhere in it",
    "starts_with": "text: begins with this",
    "length": "characters of a text, elements of a list, keys of a mapping: a number or matchers",
    "one_of": "equals one of these values",
    "approx": "is near this number, or list of numbers; within 1e-6, or {value, tolerance}",
    "gt": "is greater",
    "ge": "is greater or equal",
    "lt": "is less",
    "le": "is less or equal",
    "type": "is a text, number, integer, boolean, null, list or mapping (or JSON Schema's string, array, object)",
    "json_schema": "is valid by this JSON Schema",
    "occurs": "how often: {text: times}, or {of: matchers on an element, times: times}; times may be matchers",
    "all": "a list: every one of these holds; otherwise: holds for every element of a list",
    "any": "a list: at least one of these holds; otherwise: holds for some element of a list",
    "not": "does not hold",
    "fields": "a mapping: these keys match, others are free",
    "same_as": "equals what an earlier step saved under this name",
    "none_contain": "inspect files: no file holds any of these texts",
}

HIT_CHECKS: Mapping[str, str] = {
    "first": "the best hit is this one",
    "includes": "these are among the hits",
    "excludes": "none of these is among the hits",
    "order": "these are among the hits, in this order; others may stand between",
    "count": "how many hits: a number or matchers",
    "empty": "whether there is no hit",
    "scores": "the list of scores, best first, or {name: matchers on that hit's score}",
    "explain": "{name: matchers on that hit's explanation}",
    "text": "the texts of all hits, joined by newlines",
    "not": "these checks do not all hold",
}

HIT_FIELDS = ("id", "text", "score", "kind", "key", "created_at", "metadata", "explain")

CALL_CHECKS: Mapping[str, str] = {
    "in_order": "these calls happened in this order; others may stand between (a plain list means this)",
    "any_order": "these calls happened, in whatever order",
    "only": "exactly these calls happened, in this order",
    "none": "`true`: no call happened; names: none of these tools was called",
    "any_of": "at least one of these happened: calls, or lists of calls in order",
    "count": "how many calls: a number or matchers",
    "not": "these checks do not all hold",
}

METRICS: Mapping[str, str] = {
    "recall": "the part of the relevant documents that is among the first k",
    "recall_all": "the part of the questions whose relevant documents are all among the first k",
    "precision": "the part of the first k that is relevant",
    "success": "the part of the questions with a relevant document among the first k",
    "ndcg": "normalised discounted cumulative gain of the first k, binary gains",
    "mrr": "the mean of 1 / rank of the first relevant document",
    "abstention": "the part of the questions without an answer for which nothing came back",
}
