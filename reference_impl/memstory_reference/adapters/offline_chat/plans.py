"""What to do next for what was said: which tools to call, and what to say when there is nothing left to call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memstory_reference.adapters.offline_chat import tool_roles
from memstory_reference.adapters.offline_chat.answers import UNKNOWN, confirmed, confirmed_in_their_words
from memstory_reference.adapters.offline_chat.conversation import Conversation
from memstory_reference.adapters.offline_chat.questions import Question, parse_question
from memstory_reference.adapters.offline_chat.tool_results import Outcome, ToolResult
from memstory_reference.adapters.offline_chat.topics import noun_phrase_key
from memstory_reference.adapters.offline_chat.utterances import Kind
from memstory_reference.adapters.offline_chat.wording import content_words, shared
from memstory_reference.ports import ToolRequest


def next_calls(talk: Conversation, *, answered: bool) -> tuple[ToolRequest, ...]:
    """Return the calls to make now, none that was made before.

    First what is to be saved or forgotten; then, while the question has no answer, one round of look-ups after another.
    """
    made = [result.request for result in talk.results]
    rounds: list[list[ToolRequest]] = [[*_saves(talk), *_forgets(talk)]]
    if talk.reading.question is not None and not answered:
        rounds += _look_ups(talk, talk.reading.question)
    for calls in rounds:
        new = [call for at, call in enumerate(calls) if call not in made and call not in calls[:at]]
        if new:
            return tuple(new)
    return ()


def closing(talk: Conversation, answer: str) -> str:
    """Return what to say at the end: what was saved or not, and the answer, or that it is not known."""
    said = [*_on_saves(talk), *_on_forgetting(talk)]
    if talk.reading.question is not None:
        said.append(answer or _unknown(talk.results))
    return " ".join(said) or _TALK[talk.reading.kind]


_TALK = {
    Kind.STATEMENT: "Understood, thank you for telling me.",
    Kind.SMALL_TALK: "I am here. Tell me what to keep in mind, or ask me about what you told me.",
    Kind.COURTESY: "You are welcome.",
}


def _saves(talk: Conversation) -> Iterator[ToolRequest]:
    roles = talk.roles
    for fact in talk.reading.facts:
        if roles.save_topic is not None:
            yield tool_roles.save_topic_call(roles.save_topic, fact.topic, fact.value)
        elif roles.note is not None:
            yield tool_roles.note_call(roles.note, fact.said)
    if talk.reading.informs and roles.note is not None and roles.save_topic is None:
        # A memory with topics takes in every turn by itself; one that only keeps notes is told.
        yield tool_roles.note_call(roles.note, talk.reading.informs)


def _look_ups(talk: Conversation, question: Question) -> Iterator[list[ToolRequest]]:
    """Yield rounds of look-ups: the likeliest topic, then a search with the other topics; a search first if open."""
    roles = talk.roles
    topics = [tool_roles.recall_call(roles.recall_topic, key) for key in question.keys] if roles.recall_topic else []
    search = [tool_roles.search_call(roles.search, question.query)] if roles.search else []
    if question.search_first or not topics:
        yield search
        yield topics
    else:
        yield topics[:1]
        yield [*search, *topics[1:]]


def _forgets(talk: Conversation) -> Iterator[ToolRequest]:
    tool, thing = talk.roles.forget, talk.reading.forget
    if tool is None or thing is None:
        return
    topic = _topic_of(thing)
    call = tool_roles.forget_call(tool, topic=topic, thing=thing, memory_id=_id_of(thing, talk.results))
    if call is not None:
        yield call
    elif talk.roles.search is not None:
        # The tool wants an id: look for it first.
        yield tool_roles.search_call(talk.roles.search, thing)


def _topic_of(thing: str) -> str:
    keys = parse_question(thing).keys
    return keys[0] if keys else noun_phrase_key(thing)


def _id_of(thing: str, results: Sequence[ToolResult]) -> str | None:
    """Return the id of the found memory that shares most words with `thing`, at least half of them."""
    wanted = content_words(thing)
    found = [finding for result in results for finding in result.findings if finding.id]
    scored = [(len(shared(wanted, content_words(finding.text))), finding.id) for finding in found]
    top = max(scored, key=lambda pair: pair[0], default=(0, None))
    return top[1] if wanted and 2 * top[0] >= len(wanted) else None


def _on_saves(talk: Conversation) -> Iterator[str]:
    writes = [result for result in talk.results if tool_roles.saves(result.request)]
    if not talk.reading.facts:
        return
    if talk.roles.save_topic is None and talk.roles.note is None and not writes:
        yield "I have no tool to keep that with, so I can only keep it in mind during this conversation."
    for fact, result in zip(talk.reading.facts, writes, strict=False):
        if result.outcome is Outcome.FAILED:
            yield f"I could not save that. {result.value}"
        else:
            yield confirmed(fact.topic, fact.value) if _OWN.match(fact.said) else confirmed_in_their_words(fact.said)


_OWN = re.compile(r"(?:my|our|the|I|we|I['’]m|(?:please )?call|it|that|no|never|actually)\b", re.IGNORECASE)
"""How what the user says of their own begins; what is said of others is confirmed in the user's words."""


def _on_forgetting(talk: Conversation) -> Iterator[str]:
    if talk.reading.forget is None:
        return
    done = [result for result in talk.results if tool_roles.forgets(result.request)]
    if not done:
        yield (
            "I found no such memory to forget."
            if talk.roles.forget
            else "I have no tool to forget with, so what is stored stays."
        )
    for result in done:
        yield (
            f"I could not forget that. {result.value}"
            if result.outcome is Outcome.FAILED
            else "Done: I have forgotten that."
        )


def _unknown(results: Sequence[ToolResult]) -> str:
    failed = next((result for result in results if result.outcome is Outcome.FAILED), None)
    return f"{UNKNOWN} {failed.value}" if failed is not None else UNKNOWN
