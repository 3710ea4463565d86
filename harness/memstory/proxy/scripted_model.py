"""The language model inside a memory, answered by the rules of a story: a server on this machine while a case runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memstory.errors import SetupError, StoryError
from memstory.target import Tree

if TYPE_CHECKING:
    from memstory.proxy.server import Proxy

NAME = "scripted"
"""What the model is called; whoever reads a report sees that no model was behind it."""


class ScriptedModel:
    """Serves the rules under a story's `model:` at `url`, in OpenAI's protocol."""

    def __init__(self, rules: Sequence[Mapping[str, Tree]]) -> None:
        self._proxy = _proxy(rules)
        self._proxy.start()
        self.url = self._proxy.url

    def close(self) -> None:
        """End the server."""
        self._proxy.stop()

    def check(self) -> None:
        """Raise StoryError where the memory asked its model for what no rule answers."""
        if self._proxy.failures:
            raise StoryError(self._proxy.failures[-1])

    def data(self, since: int = 0) -> Mapping[str, Tree]:
        """Return how many calls there were after call number `since`, and what each was."""
        calls = self._proxy.calls[max(since, 0) :]
        return {
            "calls": len(calls),
            "log": [{"call": one.number, "path": one.path, "status": one.status} for one in calls],
        }


def _proxy(rules: Sequence[Mapping[str, Tree]]) -> Proxy:
    try:
        from memstory.proxy.answering import Scripted  # noqa: PLC0415  (an extra)
        from memstory.proxy.server import Proxy  # noqa: PLC0415
    except ImportError as error:
        missing = f"a scripted model needs '{error.name}', which is not installed"
        raise SetupError(f"{missing}. Install it with: pip install 'memstory[proxy]'") from error
    return Proxy(Scripted(rules))
