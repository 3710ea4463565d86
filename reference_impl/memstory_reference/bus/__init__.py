"""The bus on which tools, agents and memories meet: subjects, rules for payloads, and a bus inside one process."""

from memstory_reference.bus.in_process import BusLimits, BusMessage, InProcessBus

__all__ = [
    "BusLimits",
    "BusMessage",
    "InProcessBus",
    "calls",
    "deliveries",
    "permissions",
    "subjects",
]
