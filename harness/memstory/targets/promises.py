"""Targets that promise by their form, not by a declaration: what they can do beside that, a run finds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memstory.contract.target import Capability, TargetFactory


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFindings:
    """Capabilities beside those that were promised: what was found to hold, and what there was no time to try."""

    holds: Sequence[Capability] = ()
    not_reached: Sequence[Capability] = ()


class PromisingFactory(TargetFactory):
    """A factory whose `findings` are there once it was tried; one that `is_declared` says all of itself already.

    What its author takes back is in `taken_back`: it is not tried, and not had if it holds.
    """

    is_declared: bool = False
    findings: ProbeFindings | None = None
    taken_back: frozenset[Capability] = frozenset()

    @property
    def found(self) -> frozenset[Capability]:
        """What was found to hold, without what is taken back."""
        return frozenset(self.findings.holds if self.findings else ()) - self.taken_back

    def findings_remark(self, promising: str, name: str) -> str:
        """Say what was found beside that which, for example, `its signatures promise`; nothing before."""
        if self.findings is None:
            return ""
        told = f"Probed: beside what {promising} it has {', '.join(sorted(self.found)) or 'nothing'}"
        left = self.findings.not_reached
        if not left:
            return f"{told} (`memstory probe {name}`)."
        return (
            f"{told}. No time was left to try {', '.join(left)}, whose stories did not run: `memstory probe {name}` "
            "takes longer, and prints what to declare."
        )
