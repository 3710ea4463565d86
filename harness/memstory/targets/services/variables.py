"""Values that come from the environment, `${NAME}` in a table: filled in when a target is made, never told."""

from __future__ import annotations

import os
import re
from typing import Final

from memstory.contract.errors import SetupError

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")


class Variables:
    """Fills in variables, and takes their values out of messages; `where` begins its messages."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._values: dict[str, str] = {}

    def filled(self, key: str, written: str, *, is_secret: bool = False) -> str:
        """Return `written` with its variables filled in.

        Raises:
            SetupError: a variable that is not set or is empty, or whose value cannot be in a header.
        """
        return _VARIABLE.sub(lambda found: self._value(key, found[1], is_secret=is_secret), written)

    def hidden(self, text: str, shortest: int = 1) -> str:
        """Return `text` with every secret value of at least `shortest` characters replaced by its variable's name."""
        for value, name in sorted(self._values.items(), key=lambda pair: -len(pair[0])):
            if len(value) >= shortest:
                text = text.replace(value, f"${{{name}}}")
        return text

    def _value(self, key: str, name: str, *, is_secret: bool) -> str:
        value = os.environ.get(name, "")
        if not value:
            raise SetupError(f"{self._where} '{key}' takes the environment variable {name}, which is not set")
        if is_secret:
            if not (value.isascii() and value.isprintable()):
                raise SetupError(
                    f"{self._where} '{key}' takes the environment variable {name}, which has characters that a header "
                    "cannot have, such as a line break at its end"
                )
            self._values[value] = name
        return value
