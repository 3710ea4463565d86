"""A chat model of documented rules: stands in for a language model where none is at hand, and says so in its name."""

from memstory_reference.adapters.offline_chat.model import OfflineChat

__all__ = ["OfflineChat"]
