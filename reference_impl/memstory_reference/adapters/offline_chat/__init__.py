"""A chat model of documented exemplars and few rules: stands in for a language model, and says so in its name."""

from memstory_reference.adapters.offline_chat.model import OfflineChat

__all__ = ["OfflineChat"]
