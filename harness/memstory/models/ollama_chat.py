"""Conversation with a model on an Ollama server, tools and streaming included."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx
import ollama

from memstory.contract.models import (
    REPLY,
    BrokenReplyError,
    ChatModelUnavailableError,
    ChatRequest,
    Message,
    Reply,
    ToolRequest,
    function_of,
)
from memstory.contract.values import Tree
from memstory.models.ollama_address import DEFAULT

TIMEOUT_SECONDS = 120.0
"""Waited for each piece of an answer; the first one may have to wait until the model is loaded."""

TOOL_MODELS = "qwen3:4b or llama3.1:8b"
"""Models that call tools, to name to who has chosen one that does not."""


class OllamaChat:
    """Asks `model` at `host`; every failure is a `ChatModelUnavailableError` that says what to type.

    Answers are streamed, so `timeout_seconds` is the longest silence and not the longest answer; `on_text` gets
    each piece of a reply to the user.
    """

    def __init__(
        self,
        model: str,
        host: str = DEFAULT,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self.name = f"ollama:{model}"
        self._model = model
        self._host = host
        self._timeout_seconds = timeout_seconds
        self._on_text = on_text

    async def chat(self, request: ChatRequest) -> Reply:
        answer = _Answer()
        try:
            async for part in self._stream(request):
                answer.take(part)
                if self._on_text is not None and request.purpose == REPLY and part.message.content:
                    self._on_text(part.message.content)
        except ollama.ResponseError as error:
            raise self._refusal(error, answer) from error
        except httpx.TimeoutException as error:
            raise self._silent(answer) from error
        except (httpx.ConnectError, ConnectionError) as error:
            raise ChatModelUnavailableError(
                f"Ollama does not answer at {self._host}. Start it with: ollama serve"
            ) from error
        except httpx.HTTPError as error:
            raise self._broken_off(f"the connection broke: {str(error) or type(error).__name__}", answer) from error
        except (ValueError, TypeError) as error:
            # The client reads each line as JSON of a known shape.
            raise self._broken_off("it sent a line that is not part of an answer", answer) from error
        if not answer.done:
            raise self._broken_off("the stream ended without its last part", answer)
        if answer.cut and request.response_schema is not None:
            raise self._broken_off("its length limit was reached before the JSON was complete", answer)
        return answer.reply()

    async def _stream(self, request: ChatRequest) -> AsyncIterator[ollama.ChatResponse]:
        # Its own client: next to a model's answer it costs nothing, and needs no closing.
        async with ollama.AsyncClient(host=self._host, timeout=self._timeout_seconds) as client:
            parts = await client.chat(
                model=self._model,
                messages=[_ollama_message(message) for message in request.messages],
                tools=[function_of(tool) for tool in request.tools] or None,
                stream=True,
                format=None if request.response_schema is None else dict(request.response_schema),
                options=None if request.temperature is None else {"temperature": request.temperature},
            )
            async for part in parts:
                yield part

    def _refusal(self, error: ollama.ResponseError, answer: _Answer) -> ChatModelUnavailableError:
        if error.status_code == _IN_STREAM:
            return self._broken_off(f"it reported: {error.error}", answer)
        said = f"Ollama at {self._host} refused: {error.error}"
        if error.status_code == httpx.codes.NOT_FOUND:
            return ChatModelUnavailableError(f"{said}. Get it with: ollama pull {self._model}")
        if "does not support tools" in error.error:
            return ChatModelUnavailableError(
                f"{said}. The memory is reached by tools: choose a model that calls them, such as {TOOL_MODELS} "
                "('ollama pull' it first)."
            )
        if "does not support chat" in error.error:
            return ChatModelUnavailableError(
                f"{said}. It makes embeddings: choose a chat model, such as {TOOL_MODELS}."
            )
        return ChatModelUnavailableError(
            f"{said} (status {error.status_code}). Look at it with: ollama show {self._model}"
        )

    def _silent(self, answer: _Answer) -> ChatModelUnavailableError:
        what = "stopped in the middle of its answer" if answer.begun else "gave no answer"
        error = BrokenReplyError if answer.begun else ChatModelUnavailableError
        return error(
            f"{self._model} at {self._host} {what} and was silent for {self._timeout_seconds:g} s. It may still be "
            "loading: see 'ollama ps', then try again, raise the time limit or choose a smaller model."
        )

    def _broken_off(self, why: str, answer: _Answer) -> ChatModelUnavailableError:
        got = f" after {len(answer.content)} characters" if answer.begun else ""
        error = BrokenReplyError if answer.begun else ChatModelUnavailableError
        return error(
            f"Ollama at {self._host} broke off the answer of {self._model}{got}; {why}. "
            "Try again; if it stays, look at 'ollama ps' and restart with: ollama serve"
        )


@dataclass(slots=True)
class _Answer:
    """An answer while it comes in, piece by piece."""

    content: str = ""
    thinking: str = ""
    requests: list[ToolRequest] = field(default_factory=list)
    done: bool = False
    cut: bool = False
    begun: bool = False

    def take(self, part: ollama.ChatResponse) -> None:
        message = part.message
        self.content += message.content or ""
        self.thinking += message.thinking or ""
        for call in message.tool_calls or ():
            self.requests.append(ToolRequest(name=call.function.name, arguments=dict(call.function.arguments)))
        self.begun = self.begun or bool(message.content or message.thinking or message.tool_calls)
        self.done = self.done or bool(part.done)
        self.cut = self.cut or part.done_reason == "length"

    def reply(self) -> Reply:
        return Reply(content=self.content, tool_requests=tuple(self.requests), thinking=self.thinking or None)


_IN_STREAM = -1
"""The status of a failure that came under HTTP 200, in the middle of a stream."""


def _ollama_message(message: Message) -> dict[str, Tree]:
    written: dict[str, Tree] = {"role": message.role, "content": message.content}
    if message.tool_requests:
        written["tool_calls"] = [
            {"function": {"name": request.name, "arguments": dict(request.arguments)}}
            for request in message.tool_requests
        ]
    if message.tool is not None:
        written["tool_name"] = message.tool
    return written
