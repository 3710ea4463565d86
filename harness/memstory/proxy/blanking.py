"""What differs from run to run in a request: ids, dates and times. Two requests are the same without them.

Prompts of memories hold random ids and the present time, so a recording that is looked up by the exact text is never
found again. An answer may quote an id of its prompt; it is kept by its number, and filled in from the new request.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.contract.values import Tree

_VARYING: Final = re.compile(
    r"""
      (?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])  # a UUID
    | (?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z])                                          # the same without dashes
    | (?<![0-9A-Za-z])(?:call|chatcmpl|toolu|msg|run|step|thread)[-_][0-9A-Za-z]{6,}       # ids of OpenAI's kind
    | (?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?Z|\ ?[+-]\d\d:?\d\d)?)?(?!\d)
    | (?<!\d)\d\d:\d\d:\d\d(?:[.,]\d+)?(?!\d)
    | (?:January|February|March|April|May|June|July|August|September|October|November|December)\ \d{1,2},\ \d{4}
    | ⟦\d+⟧                                                                                # our own marks
    """,
    re.VERBOSE,
)
_MARK: Final = re.compile(r"⟦(\d+)⟧")
_NOT_ASKED: Final = frozenset({"stream", "stream_options", "user", "safety_identifier", "metadata"})
"""Fields that say how an answer is sent, or who asks; what is asked is the same without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request without what varies; `found` are the varying texts, the nth of which is in `body` as ⟦n⟧."""

    path: str
    body: Tree
    found: Sequence[str]

    @property
    def key(self) -> str:
        """Return what tells the request from others."""
        # Half of a character, which is not UTF-8, as its escape.
        text = canonical([self.path, self.body]).encode(errors="backslashreplace")
        return hashlib.sha256(text).hexdigest()[:24]

    def blanked(self, answer: Tree) -> Tree:
        """Return an answer with a mark for every varying text that the request has too."""
        marks = {text: f"⟦{number}⟧" for number, text in enumerate(self.found)}
        if not marks:
            return answer
        known = re.compile("|".join(re.escape(text) for text in sorted(marks, key=len, reverse=True)))
        return _mapped(answer, lambda text: known.sub(lambda hit: marks[hit[0]], text))

    def filled(self, answer: Tree) -> Tree:
        """Return a recorded answer with the varying texts of this request in place of the marks."""

        def text_of(hit: re.Match[str]) -> str:
            number = int(hit[1])
            return self.found[number] if number < len(self.found) else hit[0]

        return _mapped(answer, lambda text: _MARK.sub(text_of, text))


def asked(path: str, body: Mapping[str, Tree]) -> Asked:
    """Return a request without what varies, which is numbered by first appearance, keys in their order.

    >>> one = asked("chat/completions", {"messages": ["Today is 2026-01-02.", "2026-01-02"], "stream": True})
    >>> one.body, one.found
    ({'messages': ['Today is ⟦0⟧.', '⟦0⟧']}, ['2026-01-02'])
    """
    numbers: dict[str, int] = {}

    def mark(hit: re.Match[str]) -> str:
        return f"⟦{numbers.setdefault(hit[0], len(numbers))}⟧"

    told = {name: body[name] for name in sorted(body) if name not in _NOT_ASKED}
    blank = _mapped(told, lambda text: _VARYING.sub(mark, text))
    return Asked(path=path, body=blank, found=list(numbers))


def canonical(value: Tree) -> str:
    """Return JSON that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _mapped(value: Tree, change: Callable[[str], str]) -> Tree:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _mapped(value[key], change) for key in sorted(value)}
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    return value
