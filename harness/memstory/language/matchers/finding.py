"""What a check finds, and how values and their difference are shown to a person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from memstory.contract.errors import MemstoryError
from memstory.contract.target import Tree

_SHOWN = 200
_LARGEST_COMPARED = 20_000
_LONGEST_SHOWN = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether a check holds. `says` is a predicate that is true of the value, whether the check holds or not.

    `kind` is one of a few words for what was found, where the check has such.
    """

    holds: bool
    says: str
    expected: str | None = None
    actual: str | None = None
    difference: str | None = None
    kind: str | None = None


class Undecided(MemstoryError):  # noqa: N818  (no error of anybody: the check fails)
    """A check of which nobody can say whether it holds: whatever is around it fails, `not` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check may know beside the value: saved names, the texts of what they were saved from, a judge's verdicts.

    `judged` says of facts whether the answer fits them.
    """

    names: Mapping[str, Tree] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, bool] = field(default_factory=dict)


def show(value: Tree, limit: int = _SHOWN) -> str:
    """Return `value` for a sentence: texts in quotes, the rest as JSON, cut to `limit` characters.

    >>> print(show([1, None]), show("abcdef", 4), show("I don't know"))
    [1, null] 'abc…' "I don't know"
    """
    if isinstance(value, str):
        cut = value if len(value) <= limit else f"{value[: limit - 1]}…"
        quote = '"' if "'" in cut and '"' not in cut else "'"
        return quote + cut.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("\n", "\\n") + quote
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def listed(values: Tree) -> str:
    """Return several values for a sentence."""
    return ", ".join(show(value, 80) for value in values) or "nothing"


def difference(wanted: Tree, found: Tree) -> str | None:
    """Return what turns `wanted` into `found`, a line for each change; None unless both are structures of fair size."""
    if not all(isinstance(value, (list, Mapping)) for value in (wanted, found)):
        return None
    if max(len(repr(wanted)), len(repr(found))) > _LARGEST_COMPARED:
        return None

    from deepdiff import DeepDiff  # noqa: PLC0415  (takes up to a second, and most runs find no difference)

    changes = DeepDiff(wanted, found, ignore_numeric_type_changes=True, verbose_level=2)
    text = re.sub(r"\broot(?=[\[ ])", "it", str(changes.pretty()))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
