"""How well the guards of the reference memories judge, by rules alone: `python benchmarks/guards.py [--wrong]`.

Judges the lists `crisis.yaml`, `unsafe_rules.yaml` and `secrets.yaml` of `tests/memstory_reference/text`, which were
written before the rules were looked at, and shorter ones that were written after them (`crisis_more.yaml` …). Prints,
for each, recall and precision: of the half that may be looked at while rules are written, of the half that is kept back
by a hash of its texts, and of the later list; `--wrong` lists what the first half has wrong. Of secrets it prints as
well how many keep all the rest of their text. No language model takes part.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from memstory_reference.systems.layers.policy import AGAINST, UNSAFE, crisis_notice, refusal_reason
from memstory_reference.systems.layers.records import Rule
from memstory_reference.text.secret_guard import SecretPolicy

LISTS = Path(__file__).parents[1] / "tests/memstory_reference/text"
OPEN, BACK, LATER = SETS = ("open", "kept back", "later")
INERT = "¦"
"""Stands in values of the shape of a real token, so that no scanner takes the list for a leak."""

Row = Mapping[str, Any]


def rows_of(name: str) -> list[Row]:
    """Return the rows of a list as they are judged."""
    rows = yaml.safe_load((LISTS / f"{name}.yaml").read_text("utf-8"))
    return [
        {key: value.replace(INERT, "") if isinstance(value, str) else value for key, value in row.items()}
        for row in rows
    ]


def half_of(row: Row) -> str:
    """Return whether a row may be looked at while rules are written."""
    return (OPEN, BACK)[hashlib.sha256(row["say"].encode()).digest()[0] % 2]


def kept_of(text: str) -> str:
    """Return what is kept of a text by default."""
    return SecretPolicy().admit(text)[0]


def is_gone(row: Row) -> bool:
    """Say whether nothing of a secret is kept; a text without one is to be kept as it is."""
    kept = kept_of(row["say"])
    return row["gone"] not in kept if row["secret"] is True else kept != row["say"]


def is_rest_kept(row: Row) -> bool:
    """Say whether all words before and after a secret are kept."""
    kept, (before, _, after) = kept_of(row["say"]), row["say"].partition(row["gone"])
    return row["gone"] not in kept and kept.startswith(before.rstrip(" '\"(")) and kept.endswith(after.lstrip(" '\")"))


def is_rule_refused(row: Row) -> bool:
    """Say whether a memory would not learn the wish as a rule, because it is not safe."""
    rule = Rule(rule=row["say"], explicit=True, evidence_quote=row["say"])
    return refusal_reason(rule, ()) in (UNSAFE, AGAINST)


Judge = Callable[[Row], bool]
GUARDS: Mapping[str, tuple[Judge, Judge]] = {
    "crisis": (lambda row: row["risk"], lambda row: crisis_notice(row["say"]) is not None),
    "unsafe_rules": (lambda row: row["unsafe"], is_rule_refused),
    "secrets": (lambda row: row["secret"] is True, is_gone),
}
"""What each guard should find, and what it does."""


def is_wrong(name: str, row: Row) -> bool:
    """Say whether a guard takes a row for what it is not."""
    wanted, found = GUARDS[name]
    return wanted(row) != found(row)


def main(*, wrong: bool) -> None:
    """Print the figures."""
    logging.disable()
    for name, (wanted, found) in GUARDS.items():
        placed = [*((row, half_of(row)) for row in rows_of(name)), *((row, LATER) for row in rows_of(f"{name}_more"))]
        for half in SETS:
            mine = [row for row, part in placed if part == half]
            print(f"{name:12} {half:9} {figures(mine, wanted, found)}")
            if name == "secrets":
                true = [row for row in mine if wanted(row)]
                chosen = [row for row in mine if row["secret"] == "choice"]  # noqa: S105  (no password)
                print(
                    f"{'':22} the rest kept of {sum(map(is_rest_kept, true))}/{len(true)}, "
                    f"kept of the owner's choice {sum(not found(row) for row in chosen)}/{len(chosen)}"
                )
            if wrong and half == OPEN:
                for row in mine:
                    if is_wrong(name, row):
                        print("   ", "missed" if wanted(row) else "alarm ", f"[{row['kind']}]", row["say"][:110])


def figures(rows: Sequence[Row], wanted: Judge, found: Judge) -> str:
    """Return recall and precision in words."""
    judged = Counter((wanted(row), found(row)) for row in rows)
    hits, misses, alarms = judged[True, True], judged[True, False], judged[False, True]
    precision = f"{hits / (hits + alarms):.2f}" if hits + alarms else "-"
    return (
        f"recall {hits / (hits + misses):.2f} ({hits}/{hits + misses}), precision {precision} ({hits}/{hits + alarms})"
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--wrong", action="store_true", help="list what is judged wrongly of the open half")
    main(wrong=options.parse_args().wrong)
