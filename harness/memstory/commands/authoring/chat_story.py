"""A story from a chat: what the user said as steps, and what a reply repeats of earlier turns as expectations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

from memstory.contract.errors import SetupError

MOST_CHARACTERS: Final = 1_000_000
_WORDS_ASKED: Final = 3
_LEAST_LETTERS: Final = 4
_ROLES: Final = {
    "user": "user", "me": "user", "human": "user", "you": "user",
    "assistant": "assistant", "agent": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
}  # fmt: skip
_LINE: Final = re.compile(rf"^\s*(?:\*\*)?({'|'.join(_ROLES)})(?:\*\*)?\s*[:>]\s?(.*)$", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
_COMMON: Final = frozenset(
    _WORD.findall("""
    about again also been before both could does from have here into just like more much only other over said
    same some such than that their them then there these they this those very want well were what when where
    which while will with would your yours remember told know think
    """)
)
_HINT: Final = "write lines such as 'user: …' and 'assistant: …', or JSON messages with 'role' and 'content'"


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One turn of a chat."""

    role: Literal["user", "assistant"]
    text: str


def turns_of(text: str, file: str) -> list[ChatTurn]:
    """Return the turns of a chat: `user:` and `assistant:` lines, a JSON list of messages, or one message a line.

    Raises:
        SetupError: there is no turn of a user in it.
    """
    if len(text) > MOST_CHARACTERS:
        raise SetupError(f"{file} has {len(text):,} characters; a chat has at most {MOST_CHARACTERS:,}")
    messages = _messages(text, file)
    turns = list(_from_lines(text) if messages is None else _from_messages(messages, file))
    if not any(turn.role == "user" for turn in turns):
        raise SetupError(f"{file} has no turn of a user: {_HINT}")
    return turns


def story_of_chat(turns: Sequence[ChatTurn], name: str) -> str:
    """Return a story as YAML: each turn of the user is a step; replies that repeat earlier turns are expected."""
    lines = [
        "# Made from a chat. Keep the turns that matter and correct what is expected: a reply that was wrong then is",
        "# expected here, too. Words: `memstory matchers`.",
        f"story: {name}",
        f"title: {_yaml_quote('The agent still knows what the user said')}",
        "harm: wrong",
        "steps:",
    ]
    said: set[str] = set()
    for place, turn in enumerate(turns):
        if turn.role != "user":
            continue
        lines.append(f"  - say: {_yaml_quote(turn.text)}")
        reply = next(iter(turns[place + 1 : place + 2]), None)
        if reply is not None and reply.role == "assistant":
            lines.append(f"    # then: {' '.join(reply.text.split())[:160]}")
            if known := _repeated_words(reply.text, said, turn.text):
                wanted = ", ".join(f"{{icontains: {_yaml_quote(word)}}}" for word in known)
                lines += ["    expect:", f"      answer: {{any: [{wanted}]}}"]
        said |= {word.casefold() for word in _WORD.findall(turn.text)}
    return "\n".join(lines) + "\n"


def _repeated_words(reply: str, said: set[str], question: str) -> list[str]:
    """Return words of a reply that the user said in an earlier turn, and not in the question."""
    asked = {word.casefold() for word in _WORD.findall(question)}
    found = dict.fromkeys(
        word
        for word in _WORD.findall(reply)
        if (folded := word.casefold()) in said - asked
        and (word.isdigit() or word[:1].isupper() or len(word) >= _LEAST_LETTERS)
        and folded not in _COMMON
    )
    # Names and numbers tell more than other words.
    ranked = sorted(found, key=lambda word: not (word[:1].isupper() or word.isdigit()))
    return ranked[:_WORDS_ASKED]


def _yaml_quote(text: str) -> str:
    """Return `text` as a YAML text in double quotes on one line, in which nothing is a reference."""
    quoted: str = yaml.safe_dump(text.replace("${", "$${"), default_style='"', width=10**9, allow_unicode=True)
    return quoted.strip()


def _messages(text: str, file: str) -> list[Any] | None:
    """Return the messages of a JSON file, or of one with a message a line; None if it is neither."""
    if text.lstrip()[:1] not in {"[", "{"}:
        return None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return [_message(line, f"{file}:{number}") for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    inner = whole.get("messages") if isinstance(whole, dict) else whole
    return inner if isinstance(inner, list) else [whole]


def _message(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{place}: this line is not JSON ({error}); {_HINT}") from error


def _from_messages(messages: Sequence[Any], file: str) -> Iterator[ChatTurn]:
    for number, one in enumerate(messages, 1):
        if not isinstance(one, dict) or not isinstance(one.get("role"), str):
            raise SetupError(f"{file}: message {number} has no 'role'; {_HINT}")
        content = one.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        text = "\n".join(one for one in texts if isinstance(one, str)).strip()
        role = _ROLES.get(one["role"].casefold())
        if role and text:
            yield ChatTurn("user" if role == "user" else "assistant", text)


def _from_lines(text: str) -> Iterator[ChatTurn]:
    turn: ChatTurn | None = None
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            if turn and turn.text.strip():
                yield ChatTurn(turn.role, turn.text.strip())
            role = _ROLES[found[1].casefold()]
            turn = ChatTurn("user" if role == "user" else "assistant", found[2])
        elif turn:
            turn = ChatTurn(turn.role, f"{turn.text}\n{line}")
    if turn and turn.text.strip():
        yield ChatTurn(turn.role, turn.text.strip())
