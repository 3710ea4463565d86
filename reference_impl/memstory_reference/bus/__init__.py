"""The bus on which tools, agents and memories meet: subjects, rules for payloads, and a bus inside one process."""

from memstory_reference.bus.bus import Bus, BusMessage, InProcessBus, Subscription

__all__ = [
    "Bus",
    "BusMessage",
    "InProcessBus",
    "Subscription",
    "bus",
    "calls",
    "permissions",
    "subjects",
]
