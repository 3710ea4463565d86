"""The chat shim: a small agent of the harness, for conversational stories on a backend without chat.

The agent offers the backend's own add, get and search to a chat model as tools. It remembers nothing itself but the
last turns of a session, and it names itself in every report, so that nobody takes its talk for the backend's.
"""

from memstory.chat.agent import Agent
from memstory.chat.model import GROUP, check_model_name, load_model
from memstory.chat.shim import OPTIONS, Chats, Shim, gives_chat_to, with_shim

__all__ = [
    "GROUP",
    "OPTIONS",
    "Agent",
    "Chats",
    "Shim",
    "check_model_name",
    "gives_chat_to",
    "load_model",
    "with_shim",
]
