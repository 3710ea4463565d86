"""`memstory.toml` -> its `[targets.NAME]` tables, unchecked: every run looks for them, so nothing dear is imported."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree

FILE: Final = "memstory.toml"


def read_tables(path: Path) -> Mapping[str, Mapping[str, Tree]]:
    """Return the tables under `targets` by name, unchecked; none if there is no such file.

    Raises:
        SetupError: the file is not TOML, or `targets` holds something that is not a table.
    """
    try:
        tree = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SetupError(f"{path.name}: the file cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path.name}: this is not TOML: {error}") from error
    unknown = sorted(set(tree) - {"targets"})
    if unknown:
        raise SetupError(f"{path.name}: unknown table [{unknown[0]}]. Allowed: [targets.NAME].")
    tables = tree.get("targets", {})
    for name, table in tables.items() if isinstance(tables, dict) else [("", tables)]:
        if not isinstance(table, dict):
            place = f"[targets] '{name}'" if name else "'targets'"
            raise SetupError(f"{path.name}: {place} is not a table; write [targets.NAME] and its keys below")
    return tables  # type: ignore[no-any-return]  # checked just above
