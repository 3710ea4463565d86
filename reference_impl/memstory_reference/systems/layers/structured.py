"""A model's structured answer, checked against the requested form: a malformed one counts as none (C-30)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from memstory.contract.errors import MemstoryError
from memstory.contract.models import (
    BrokenReplyError,
    ChatModel,
    ChatModelUnavailableError,
    ChatRequest,
    Message,
    PromptTooLongError,
)
from memstory.contract.values import Json
from memstory_reference.text.lines import json_objects

ATTEMPTS = 2
TEMPERATURE = 0.0

T = TypeVar("T")


class NoDecisionError(MemstoryError):
    """The model could not be asked (`is_down`), or gave nothing usable; the message says which, without any content."""

    def __init__(self, message: str, *, is_down: bool = False) -> None:
        super().__init__(message)
        self.is_down = is_down


async def ask_for_json(
    model: ChatModel,
    prompt: str,
    *,
    purpose: str,
    schema: Mapping[str, Json],
    read: Callable[[Mapping[str, Json]], T | None],
) -> T:
    """Ask for JSON of `schema` and return what `read` makes of the first object in the reply.

    Raises:
        NoDecisionError: the model is down, or `read` returned None for both attempts.
    """
    messages = [Message(role="user", content=prompt)]
    request = ChatRequest(messages, purpose=purpose, temperature=TEMPERATURE, response_schema=schema)
    for _ in range(ATTEMPTS):
        try:
            reply = await model.chat(request)
        except BrokenReplyError:
            continue
        except PromptTooLongError:
            break  # not down: asked the same it refuses for ever
        except ChatModelUnavailableError as error:
            raise NoDecisionError(f"{purpose}: the model is unavailable", is_down=True) from error
        answer = next(json_objects(reply.content), None)
        usable = None if answer is None else read(answer)
        if usable is not None:
            return usable
    raise NoDecisionError(f"{purpose}: no usable JSON in at most {ATTEMPTS} answers")


def inside_marks(text: str) -> str:
    """Return a text so that it cannot end the marks that a prompt sets around it."""
    return text.replace("<<<", "< < <").replace(">>>", "> > >")


def text_in(answer: Mapping[str, Json], name: str) -> str:
    """Return a text of an answer; the empty text if it is missing or of another type."""
    value = answer.get(name)
    return value if isinstance(value, str) else ""
