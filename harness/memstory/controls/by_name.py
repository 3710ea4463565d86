"""Every control as an attribute: `memstory.controls.by_name:leaky_get` names its factory to another process."""

from __future__ import annotations

from memstory.contract.target import TargetFactory
from memstory.controls import CONTROLS


def __getattr__(name: str) -> type[TargetFactory]:
    if name not in CONTROLS:
        raise AttributeError(f"there is no control '{name}'")
    return CONTROLS[name]
