"""The bus on which tools, agents and memories meet: subjects, rules for payloads, and a bus inside one process."""

from memstory_reference.bus.deliveries import Bus, BusLimits, Subscription
from memstory_reference.bus.in_process import BusMessage, InProcessBus

__all__ = [
    "Bus",
    "BusLimits",
    "BusMessage",
    "InProcessBus",
    "Subscription",
    "calls",
    "deliveries",
    "permissions",
    "subjects",
]
