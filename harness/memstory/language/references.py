"""`${name}` within the texts of a story, and `$${name}`, which is that text itself and no reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_NAME: Final = r"\$\{([A-Za-z_][A-Za-z0-9_-]*)\}"
REFERENCE: Final = re.compile(rf"(?<!\$){_NAME}")
_EITHER: Final = re.compile(rf"\$?{_NAME}")


def written(text: str, value_of: Callable[[str], object]) -> str:
    """Return `text` with the value of each name in its place, and without the mark of what is no reference.

    >>> written("${a} costs $${a}", {"a": 5}.get)
    '5 costs ${a}'
    """
    return _EITHER.sub(lambda found: found[0][1:] if found[0].startswith("$$") else str(value_of(found[1])), text)


def unmarked(text: str) -> str:
    """Return `text` where no name is looked up any more.

    >>> unmarked("$${a} and ${b}")
    '${a} and ${b}'
    """
    return written(text, lambda name: f"${{{name}}}")
