"""What a run was made with, as plain texts: the pages escape them."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.reporting import views
from memstory.results.runs import Run
from memstory.results.secrecy.redaction import told


def facts_of(run: Run) -> Mapping[str, str]:
    """Return name -> text, in the order in which they are shown."""
    made = run.fingerprint
    facts = {
        "Targets": ", ".join(views.targets_of(run)) or "none",
        "When": made.started or "not recorded",
        "Time in cases": f"{sum(case.seconds for case in run.cases):.1f} s",
        "Machine": f"{made.platform}, {made.processors} processors",
        "Versions": f"memstory {made.memstory}, Python {made.python}",
        "Embedder": _said(run, "embedder"),
        "Chat model": _said(run, "chat"),
        "Redacted": told(run.redacted),
    }
    if made.options:
        facts["Options"] = ", ".join(f"{name}={value}" for name, value in made.options.items())
    return facts


def _said(run: Run, name: str) -> str:
    """Return what the targets named; one that all share is said once."""
    said = {target: ", ".join(values) for target, values in views.said_of_itself(run, name).items()}
    if len(set(said.values())) <= 1:
        return next(iter(said.values()), "none was named")
    return "; ".join(f"{target}: {values}" for target, values in said.items())
