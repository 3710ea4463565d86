"""The texts that the tools answer with, to the byte; remembered text is in them as data on one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date

from memstory.contract.values import Hit
from memstory_reference.system_memory import ForgetResult
from memstory_reference.systems.topics.entries import TOPIC, is_empty, user_words
from memstory_reference.text.lines import as_data

NO_MEMORIES = "No memories found."
SAID_SINCE = "Said since then, newest first, and more likely to hold if it says otherwise:"
SHOWN_CHARACTERS = 2_000
"""Of one engram in a list: a prompt must hold several of them."""

LISTED_CHARACTERS, MENTIONED = 500, 10
LIST_CHARACTERS = 12_000
"""Of a list of everything: what is older is counted, not shown."""


def topic_text(topic: Hit, since: Sequence[Hit] = ()) -> str:
    r"""Return a standing fact, and what was said of it since it was saved, newest first.

    >>> topic_text(Hit(id="1", key="user.language_preference", text="Elixir"))
    '[Memory: user.language_preference] Elixir'
    """
    later = [f"- {_day(one)} {_clip(user_words(one.text))}" for one in since]
    return "\n".join([f"[Memory: {topic.key}] {as_data(topic.text)}", *([SAID_SINCE] if later else []), *later])


def engrams_text(found: Sequence[Hit], today: date) -> str:
    """Return engrams as a numbered list under the date of the recall; NO_MEMORIES for none."""
    if not found:
        return NO_MEMORIES
    items = [
        f"{number}. (relevance: {one.score or 0:.2f}) {_day(one)} {_clip(one.text, SHOWN_CHARACTERS)}"
        for number, one in enumerate(found, start=1)
    ]
    return "\n".join([f"[Memory recall — {today.isoformat()}]", *items])


def memories_text(hits: Sequence[Hit]) -> str:
    """Return everything as JSON: topics by name, then engrams, newest first, as many as fit; NO_MEMORIES for none."""
    every = [{"id": one.id, "topic": one.key, "text": _clip(one.text)} for one in hits if one.kind == TOPIC]
    told = [one for one in hits if one.kind != TOPIC and not is_empty(one)]
    every += [{"id": one.id, "date": _day(one), "text": _clip(one.text)} for one in reversed(told)]
    room, shown = LIST_CHARACTERS, list[str]()
    for one in every:
        line = json.dumps(one, ensure_ascii=False)
        room -= len(line)
        if room < 0:
            break
        shown.append(line)
    more = f', "more": {len(every) - len(shown)}' if len(shown) < len(every) else ""
    lines = ",\n".join(shown)
    return f'{{"memories": [\n{lines}\n]{more}}}' if every else NO_MEMORIES


def forgotten_text(found: ForgetResult) -> str:
    """Return what was forgotten, and what still mentions it."""
    entry, *others = found.gone
    keys = [str(one.key) for one in found.gone if one.kind == TOPIC]
    what = ", ".join(keys if entry.kind == TOPIC else ["1 memory", *keys])
    turns = sum(one.kind != TOPIC for one in others)
    more = f", and the {turns} past turn{'' if turns == 1 else 's'} that said it" if turns else ""
    text = f"Memory forgotten: {what}{more}."
    if not found.mentions:
        return text
    shown = [f"- id {one.id}: {_clip(one.text)}" for one in found.mentions[:MENTIONED]]
    head = f"{len(found.mentions)} other turns mention it; ask the user whether to forget them too, by id:"
    return "\n".join([text, head, *shown])


def _clip(text: str, at_most: int = LISTED_CHARACTERS) -> str:
    content = as_data(text)
    return content if len(content) <= at_most else f"{content[: at_most - 1]}…"


def _day(engram: Hit) -> str:
    return (engram.created_at or "")[:10] or "undated"
