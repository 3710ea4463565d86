# noqa: INP001  (a script, no package)
"""Write the table of reports/baseline/faults.md from faults.yaml beside it: `python docs/make_faults.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

BASELINE = Path(__file__).parents[1] / "reports/baseline"
HARMS = ("leak", "loss", "wrong", "rank", "cosmetic")
_TABLE = re.compile(r"(?<=<!-- faults -->\n).*?(?=<!-- /faults -->)", re.DOTALL)


def faults() -> Sequence[Mapping[str, Any]]:
    """Return what faults.yaml says, the worst harm first, faults by design last."""
    found = yaml.safe_load((BASELINE / "faults.yaml").read_text("utf-8"))
    return sorted(found, key=lambda one: (one.get("design", False), HARMS.index(one["harm"])))


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as markdown: faults beyond dispute, then faults by design."""
    parts = []
    for by_design, title in (
        (False, "Beyond dispute"),
        (True, "By design or a limitation: the caller has to know"),
    ):
        rows = [one for one in found if one.get("design", False) == by_design]
        lines = [
            f"**{title}** ({len(rows)})",
            "",
            "| harm | what goes wrong | backend | stories | why |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {one['harm']} | {one['what']} | {one['backend']} | {_stories(one)} | {_why(one)} |" for one in rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _stories(fault: Mapping[str, Any]) -> str:
    names = dict.fromkeys(case.partition("[")[0] for case in fault["cases"])
    return ", ".join(names)


def _why(fault: Mapping[str, Any]) -> str:
    return f"{fault['why']}; known as {fault['upstream']}" if "upstream" in fault else fault["why"]


def with_table(page: str) -> str:
    """Return the page with the table that faults.yaml gives."""
    return _TABLE.sub(lambda _: table(faults()), page)


if __name__ == "__main__":
    written = BASELINE / "faults.md"
    written.write_text(with_table(written.read_text("utf-8")), "utf-8")
