"""The language model inside a memory, behind a proxy on this machine while a case runs: counted, and looked after."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memstory.contract.errors import NotSupported, SetupError, StoryError, TargetError
from memstory.contract.installation import install_command
from memstory.contract.target import ModelUse, Tree
from memstory.models.cassette import AGAIN
from memstory.models.openai_server import DEFAULT, HOW, KEY

if TYPE_CHECKING:
    from memstory.models.proxy import CountedCall, Proxy

SCRIPTED = "scripted"
"""What a model is called whose answers are the rules of a story; reports show by it that no model answered."""

_OURS = 502
_SAID_LIMIT, _FAILURE_LIMIT = 200, 600


class CountedModel:
    """A model that a memory reaches at `url`, in OpenAI's protocol: the `rules` of a story, else that of `server`.

    `key` is for that server; the memory needs the random word in `url` alone. `label` is its name in reports.
    """

    def __init__(
        self,
        name: str = SCRIPTED,
        *,
        rules: Sequence[Mapping[str, Tree]] = (),
        server: str = DEFAULT,
        key: str | None = None,
    ) -> None:
        self.name = name
        self.label = f"{name} ({how})" if (how := os.environ.get(HOW)) and not rules else name
        self.is_scripted = bool(rules)
        self._server = server
        self._checked = 0
        self._answerer, self._proxy = _proxy(rules, server, key)
        self._proxy.start()
        self.url = self._proxy.url

    def close(self) -> None:
        """End the server."""
        self._proxy.stop()

    @property
    def use(self) -> ModelUse:
        """What was asked up to now; embeddings are left out."""
        return sum((one.use for one in self._chat_calls()), ModelUse())

    @property
    def spoiled_replies(self) -> int:
        """How many replies a story has spoiled."""
        return int(getattr(self._answerer, "spoiled", 0))

    @property
    def is_spoiled(self) -> bool:
        """Whether the story spoils replies now."""
        return getattr(self._answerer, "mode", "ok") != "ok"

    def spoil(self, mode: str) -> None:
        """Spoil replies from now on, as `spoiled_replies` says of `mode`; `ok` gives them whole.

        Raises:
            NotSupported: the model is no script.
        """
        if not self.is_scripted:
            raise NotSupported("fault.replies", "only the replies of a story's `model:` can be spoiled")
        self._answerer.spoil(mode)

    def check(self) -> None:
        """Raise for what the memory was not answered since the last check, whatever it made of that.

        Raises:
            StoryError: no rule of the story fits a request.
            TargetError: the last call was refused: the memory asks for what no model's server has, or in a wrong way.
            SetupError: the last call failed, so that what came before was not mended by another try.
        """
        calls, self._checked = self._chat_calls()[self._checked :], len(self._chat_calls())
        failed = [one for one in calls if one.failure]
        missed = [one for one in failed if one.how == "missed"]
        if self.is_scripted and missed:
            raise StoryError(str(missed[-1].failure))
        # What a story lets fail is the memory's to handle.
        if calls and calls[-1].failure and not self.is_spoiled:
            if calls[-1].how == "refused":
                raise TargetError(f"the memory asked its model for /{calls[-1].path}, refused: {calls[-1].failure}")
            raise SetupError(self._reason(calls[-1], len(failed)))

    def last_reply(self, since: ModelUse) -> str:
        """Return what the model answered last after `since`, shortened, as a reason why nothing was kept."""
        last = next((one.said for one in reversed(self._chat_calls()[since.calls :]) if one.said is not None), None)
        return "its model was not asked" if last is None else f"its model answered: {shorten(last)}"

    def data(self, since: int = 0) -> Mapping[str, Tree]:
        """Return how many calls there were after call number `since`, and what each was."""
        calls = self._proxy.calls[max(since, 0) :]
        return {
            "calls": len(calls),
            "log": [{"call": one.number, "path": one.path, "status": one.status, "asked": one.asked} for one in calls],
        }

    def _chat_calls(self) -> Sequence[CountedCall]:
        return [one for one in self._proxy.calls if one.path != "embeddings"]

    def _reason(self, call: CountedCall, failed: int) -> str:
        """Return one sentence: what happened, where, and what to type."""
        words = " ".join(str(call.failure).split())[:_FAILURE_LIMIT].rstrip(".")
        if AGAIN in words:
            return words
        if call.status == _OURS:
            return f"{words}. Start the server, or say where it is: --target-option llm_url=URL"
        advice = {
            401: f"Put the right key into {KEY}.",
            403: f"May the key in {KEY} use this model?",
            404: f"Is {self.name!r} the name of a model there? See {self._server}/models",
            429: "Wait, run with fewer workers (-n 0), or look at your quota.",
        }
        other = "Try again, or another model: --target-option llm=openai:MODEL"
        if "tool" in words.lower():
            other = "This memory needs a model that calls tools: --target-option llm=openai:MODEL"
        tried = f", {failed} times" if failed > 1 else ""
        said = f"{self._server} answered {call.status} to the memory: {words}{tried}"
        return f"{said}. {advice.get(call.status, other)}"


def shorten(text: str) -> str:
    """Return the first words of a text as one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SAID_LIMIT else f"{line[:_SAID_LIMIT]}…"


def _proxy(rules: Sequence[Mapping[str, Tree]], server: str, key: str | None) -> tuple[Any, Proxy]:
    try:
        from memstory.models.answering import Forwarder, RuleAnswerer  # noqa: PLC0415  (an extra)
        from memstory.models.proxy import Proxy  # noqa: PLC0415
    except ImportError as error:
        missing = f"a memory with a model inside needs '{error.name}', which is not installed"
        raise SetupError(f"{missing}. Install it with: {install_command('proxy')}") from error
    answerer = RuleAnswerer(rules) if rules else Forwarder(server, key)
    return answerer, Proxy(answerer)
