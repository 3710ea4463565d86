"""Removes from results what must not be written: secrets always, and every text of a run on request.

A result is redacted before it is written anywhere, and after it was judged: outcomes, ids and numbers stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal, get_args

from memstory.contract.codec import decode, encode, encode_lean
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, ToolCall, ToolSchema, Tree, Turn
from memstory.results.outcomes import CaseResult
from memstory.results.secret_values import Secrets

Level = Literal["none", "secrets", "texts"]
LEVELS: Final[Sequence[Level]] = get_args(Level)
DEFAULT_LEVEL: Final[Level] = "secrets"

_PLAIN: Final = frozenset(
    {"id", "story", "slug", "precondition", "harm", "target", "row", "where", "digest", "outcome", "tags", "covers"}
    | {"control", "op", "at", "user", "session", "path", "field", "check", "relevant", "retrieved", "kind"}
)
"""Fields of results that are ids or words of ours, in which nothing is looked for."""

_VALUES: Final = (Hit, Item, Query, Receipt, ReceiptItem, Ref, ToolCall, ToolSchema, Turn)
_KEPT_NAMES: Final = frozenset(field.name for value in _VALUES for field in fields(value)) | {
    "all", "args", "caller", "during", "files", "items", "job", "limit", "microseconds", "mode", "moment", "name",
    "part", "reason", "search_for", "since", "times", "value", "what",
}  # fmt: skip
"""Names of fields that say nothing of what was said; other names may be content, such as the topics of a memory."""

_KEPT_WORDS: Final = frozenset({"stored", "updated", "bumped", "superseded", "held", "dropped", "discarded", "skipped"})
"""Outcomes of a receipt."""

_WORDS_OF_STEPS: Final[Mapping[str, Sequence[str]]] = {
    "run": ("job",), "inspect": ("what",), "fault": ("part", "mode"), "tool": ("name",),
}  # fmt: skip
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
_SIGNS: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_PLACE: Final = re.compile(r"\S+:\d+:\d+(?=[\s:])")


def redact(result: CaseResult, level: Level, secrets: Secrets) -> CaseResult:
    """Return `result` as it may be written down; `redacted` counts what was taken out of it."""
    if level == "none":
        return result
    counts: dict[str, int] = {}
    holds_secrets = _may_hold(result, secrets)
    if not holds_secrets and level != "texts":
        return result
    tree = encode(result)
    if holds_secrets:
        tree, counts["secrets"] = _without_secrets(tree, secrets)
    if level == "texts":
        counts["texts"] = _Texts(tree).take_out()
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return result
    made: CaseResult = decode(CaseResult, {**tree, "redacted": counts})
    return made


def redact_together(cases: Sequence[tuple[CaseResult, Level]], secrets: Secrets) -> Sequence[CaseResult]:
    """Return what `redacted` does for each: thousands of small cases are first searched as one text, which is quick."""
    if _may_hold([case for case, level in cases if level != "none"], secrets):
        return [redact(case, level, secrets) for case, level in cases]
    return [redact(case, level, secrets) if level == "texts" else case for case, level in cases]


def redaction_notice(counts: Mapping[str, int]) -> str:
    """Return the counts in words.

    >>> redaction_notice({"secrets": 1, "texts": 12}), redaction_notice({"secrets": 0})
    ('1 secret, 12 texts', 'nothing')
    """
    found = ((name, count) for name, count in sorted(counts.items()) if count)
    return ", ".join(f"{count} {name.removesuffix('s') if count == 1 else name}" for name, count in found) or "nothing"


def _may_hold(results: CaseResult | Sequence[CaseResult], secrets: Secrets) -> bool:
    text = json.dumps(encode_lean(results), ensure_ascii=False)
    # As it was said: spaces, line ends, quotes and backslashes are a part of some forms.
    return secrets.may_hold(_ESCAPED.sub(_sign, text))


def _sign(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 16)) if escaped[1] else _SIGNS.get(escaped[2], escaped[2])


def _without_secrets(value: Tree, secrets: Secrets) -> tuple[Tree, int]:
    """Take out what is in our own fields, which are walked, and in what was said, which is searched whole.

    Twice if any was found: a reason may quote a part of what is a secret by its form in the recording only.
    """
    learning = Secrets(secrets.known)
    made, count = _walk(value, learning)
    if not learning.found:
        return made, count
    return _walk(value, Secrets([*secrets.known, *learning.found]))


def _walk(value: Tree, secrets: Secrets) -> tuple[Tree, int]:
    total = 0

    def walk(value: Tree, name: str) -> Tree:
        nonlocal total
        if isinstance(value, dict) and name == "names":
            # What a story calls an id, such as `secret`, says nothing of it.
            return {key: walk(inner, "result") for key, inner in value.items()}
        if isinstance(value, dict) and name not in {"args", "result", "options", "about"}:
            return {key: inner if key in _PLAIN else walk(inner, key) for key, inner in value.items()}
        if isinstance(value, list) and name != "result":
            return [walk(inner, name) for inner in value]
        made, count = secrets.tree_without(value)
        total += count
        return made

    return walk(value, ""), total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What stays in the arguments and the result of a step: names of fields, and words that are not text."""

    names: frozenset[str]
    words: frozenset[str | None]


class _Texts:
    """Replaces every text of one case by `[text 3, 23 characters]`; equal texts have equal numbers.

    A number tells as much as a hash would, which texts are the same, and cannot be guessed back.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._numbers: dict[str, int] = {}
        self._taken = 0

    def take_out(self) -> int:
        """Change the tree in place; return how many values were replaced."""
        for trial in self._tree["trials"]:
            self._take_from_trial(trial)
        self._tree["reason"] = self._reason(self._tree["reason"], self._tree["outcome"])
        return self._taken

    def _take_from_trial(self, trial: Tree) -> None:
        recording = trial["recording"]
        tools = {tool["name"] for tool in recording["tools"]}
        arguments = {name for tool in recording["tools"] for name in tool["parameters"].get("properties", ())}
        for step in recording["steps"]:
            words = {step["args"].get(name) for name in _WORDS_OF_STEPS.get(step["op"], ())}
            kept = _Kept(names=_KEPT_NAMES | arguments, words=_KEPT_WORDS | tools | words)
            for name in ("args", "result", "error"):
                step[name] = self._hidden(step[name], kept)
            step["names"] = {name: self._hidden(value, kept) for name, value in step["names"].items()}
        if (failure := recording["failure"]) is not None:
            failure["message"] = self._reason(failure["message"], failure["kind"])
            failure["detail"] = self._mark(failure["detail"])
        for verdict in trial["verdicts"]:
            for name in ("reason", "expected", "actual", "difference"):
                verdict[name] = self._mark(verdict[name])
        trial["reason"] = self._reason(trial["reason"], trial["outcome"])
        hidden = {" ".join(text.split()): self._without_error(text) for text in recording["left"]}
        recording["left"] = [self._without_error(text) for text in recording["left"]]
        for holder in (trial, self._tree):
            holder["warnings"] = [hidden.get(text, text) for text in holder["warnings"]]

    def _without_error(self, text: str) -> str:
        """Keep of a task that was left behind all but what its exception says."""
        what, _, error = text.partition(": ")
        return f"{what}: {self._mark(error)}"

    def _reason(self, reason: str | None, outcome: str) -> str | None:
        """Keep why a target cannot do a thing, and the place in the story of all other reasons."""
        if reason is None or outcome in ("unsupported", "exhausted"):
            return reason
        place = _PLACE.match(reason)
        return f"{place[0]}: {self._mark(reason[place.end() :])}" if place else self._mark(reason)

    def _hidden(self, value: Tree, kept: _Kept) -> Tree:
        if isinstance(value, dict):
            return {
                name if name in kept.names else self._mark(name): self._hidden(inner, kept)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self._hidden(inner, kept) for inner in value]
        if not isinstance(value, str) or value in kept.words or _MOMENT.fullmatch(value):
            return value
        return self._mark(value)

    def _mark(self, text: str | None) -> str | None:
        if not text:
            return text
        self._taken += 1
        number = self._numbers.setdefault(text, len(self._numbers) + 1)
        return f"[text {number}, {len(text)} character{'' if len(text) == 1 else 's'}]"


def stricter(one: Level, other: Level) -> Level:
    """Return the level that leaves less.

    >>> stricter("none", "secrets")
    'secrets'
    """
    return max(one, other, key=LEVELS.index)
