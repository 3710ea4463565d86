"""The difference of two structures, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memstory.target import Json

_LARGEST = 20_000
_SHOWN = 2_000


def difference(wanted: Json, found: Json) -> str | None:
    """Return what turns `wanted` into `found`, a line for each change; None unless both are structures of fair size."""
    if not all(isinstance(value, (list, Mapping)) for value in (wanted, found)):
        return None
    if max(len(repr(wanted)), len(repr(found))) > _LARGEST:
        return None
    from deepdiff import DeepDiff  # noqa: PLC0415  (it takes longer to import than a story to run)

    changes = DeepDiff(wanted, found, ignore_numeric_type_changes=True, verbose_level=2)
    text = re.sub(r"\broot(?=[\[ ])", "it", str(changes.pretty()))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
