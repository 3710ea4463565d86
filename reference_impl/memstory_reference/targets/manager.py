"""The manager memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from memstory.contract.target import Tree
from memstory_reference.composition.manager import MANAGER
from memstory_reference.setting_rules import CHROMA
from memstory_reference.targets.system_target import FolderTarget, SystemFactory


class ManagerTarget(FolderTarget):
    """One manager memory; its store is in the case's workspace."""

    system = MANAGER
    folder = "memory"


class ManagerFactory(SystemFactory):
    """The manager memory: facts, conversations and context, some of which expire, behind three tools."""

    name = "manager"
    target_class = ManagerTarget


class ManagerChromaFactory(ManagerFactory):
    """The manager memory with its rows in Chroma's own persistence."""

    name = "manager-chroma"
    usual_options: ClassVar[Mapping[str, Tree]] = {"store": CHROMA}
