"""What every target promises, as tests that the author of an adapter runs on it.

In a test file of your own, with a factory that needs no argument:

    from memstory.conformance import TargetContract

    class TestMine(TargetContract):
        factory = MyFactory

Tests of what the target does not declare are skipped, and say so. `CHECKED` names the tests of each capability,
`ELSEWHERE` why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from memstory.conformance.declarations import ELSEWHERE, Declarations, Offers
from memstory.conformance.reading import Recall, Scopes
from memstory.conformance.target_tests import CHESS, HARBOUR, TEXTS, VIOLIN
from memstory.conformance.writing import Keeping, Lifetime, Removal
from memstory.contract.target import Capability

__all__ = ["CHECKED", "CHESS", "ELSEWHERE", "HARBOUR", "TEXTS", "VIOLIN", "TargetContract", "probe"]


class TargetContract(Declarations, Keeping, Recall, Removal, Scopes, Lifetime, Offers):
    """Tests of one target; set `factory`, and `kind` if the backend requires one for every item.

    `options` go into the environment. Where a language model decides what of a text is kept, `model_rules` must make it
    keep each text as it is; `TEXTS` has them all.
    """


def _tests_by_capability() -> Mapping[Capability, Sequence[str]]:
    found: dict[Capability, list[str]] = {}
    for name in sorted(name for name in dir(TargetContract) if name.startswith("test_")):
        for word in getattr(getattr(TargetContract, name), "shows", ()):
            found.setdefault(word, []).append(name)
    return found


CHECKED: Final[Mapping[Capability, Sequence[str]]] = _tests_by_capability()
"""By capability, or family that ends with a dot, the tests that fail where it is declared and not true."""
