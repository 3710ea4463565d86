"""The texts that the tools answer with, to the byte; remembered text is in them as data on one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date

from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry, is_empty, user_words
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.text.lines import as_data

NO_MEMORIES = "No memories found."
SAID_SINCE = "Said since then, newest first, and more likely to hold if it says otherwise:"
SHOWN_CHARACTERS = 2_000
"""Of one engram in a list: a prompt must hold several of them."""

LISTED_CHARACTERS, MENTIONED = 500, 10
LIST_CHARACTERS = 12_000
"""Of a list of everything: what is older is counted, not shown."""


def topic_text(entry: TopicEntry) -> str:
    r"""Return a standing fact, and what was said of it since it was saved.

    >>> topic_text(TopicEntry(id="1", topic="user.language_preference", content="Elixir", timestamp_utc=""))
    '[Memory: user.language_preference] Elixir'
    """
    later = [f"- {_day(one)} {_clip(user_words(one.content))}" for one in entry.since]
    return "\n".join([f"[Memory: {entry.topic}] {as_data(entry.content)}", *([SAID_SINCE] if later else []), *later])


def engrams_text(found: Sequence[FoundEngram], today: date) -> str:
    """Return engrams as a numbered list under the date of the recall; NO_MEMORIES for none."""
    if not found:
        return NO_MEMORIES
    items = [f"{number}. {_item(engram)}" for number, engram in enumerate(found, start=1)]
    return "\n".join([f"[Memory recall — {today.isoformat()}]", *items])


def memories_text(topics: Sequence[TopicEntry], engrams: Sequence[EngramEntry]) -> str:
    """Return everything as JSON: topics by name, then engrams, newest first, as many as fit; NO_MEMORIES for none."""
    every = [{"id": one.id, "topic": one.topic, "text": _clip(one.content)} for one in topics]
    every += [
        {"id": one.id, "date": _day(one), "text": _clip(one.content)} for one in reversed(engrams) if not is_empty(one)
    ]
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


def forgotten_text(found: ForgottenEntry) -> str:
    """Return what was forgotten, and what still mentions it."""
    named = [one.topic for one in (found.entry, *found.topics) if isinstance(one, TopicEntry)]
    what = ", ".join(named if isinstance(found.entry, TopicEntry) else ["1 memory", *named])
    more = f", and {past_turns(len(found.engrams))} that said it" if found.engrams else ""
    text = f"Memory forgotten: {what}{more}."
    if not found.mentions:
        return text
    shown = [f"- id {one.id}: {_clip(one.content)}" for one in found.mentions[:MENTIONED]]
    head = f"{len(found.mentions)} other turns mention it; ask the user whether to forget them too, by id:"
    return "\n".join([text, head, *shown])


def past_turns(number: int) -> str:
    """Return a number of turns in words.

    >>> past_turns(1), past_turns(2)
    ('the 1 past turn', 'the 2 past turns')
    """
    return f"the {number} past turn{'' if number == 1 else 's'}"


def _item(engram: FoundEngram) -> str:
    content = _clip(engram.content, SHOWN_CHARACTERS)
    return f"(relevance: {engram.score:.2f}) {_day(engram)} {content}"


def _clip(text: str, at_most: int = LISTED_CHARACTERS) -> str:
    content = as_data(text)
    return content if len(content) <= at_most else f"{content[: at_most - 1]}…"


def _day(engram: EngramEntry) -> str:
    return engram.time[:10] or "undated"
