"""The stand-in itself: reads a conversation, calls tools, answers. No language model is behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memstory.contract.errors import MemstoryError
from memstory.contract.models import ChatModelUnavailableError, ChatRequest, Message, Reply, ToolRequest
from memstory.contract.values import ToolSchema
from memstory_reference.adapters.offline_chat import announced_tools as tools
from memstory_reference.adapters.offline_chat import answers
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.text.english import lexicon
from memstory_reference.text.english.lexicon import Holder, split_sentences
from memstory_reference.text.english.statements import (
    Context,
    ParsedQuestion,
    Reading,
    StatedFact,
    facts_in,
    next_context,
    parse_question,
    read_message,
    whole_statement,
)

_COMMON, _BROAD = lexicon.alternatives("common"), lexicon.alternatives("broad")
_MOST_FORGOTTEN = 10
_BY_HAND = "You can: /forget ID in a chat of memstory-reference, forget(id) in a program, DELETE over HTTP."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    """What matters of the messages: the reading of the last thing said, and the results since then."""

    reading: Reading
    earlier: Sequence[str] = ()
    results: Sequence[tools.ToolResult] = ()
    roles: tools.Roles = field(default_factory=tools.Roles)
    known: Mapping[str, Holder] = field(default_factory=dict)

    @property
    def findings(self) -> Sequence[tools.FoundMemory]:
        """The memories that were found."""
        return [finding for result in self.results for finding in result.findings]

    @property
    def kept(self) -> Mapping[str, str]:
        """What the topics hold that were looked up."""
        return {result.topic: result.value for result in self.results if result.topic}


class OfflineChat:
    """A chat model of rules; with its own embedder it also finds what shares no word with the question."""

    name = "offline rules (deterministic stand-in)"

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    async def chat(self, request: ChatRequest) -> Reply:
        """Return tool requests, or an answer made of what the tools gave; raise if JSON of a schema is wanted."""
        if request.response_schema is not None:
            raise ChatModelUnavailableError(
                f"{self.name} holds conversations and cannot write the structured text asked for ({request.purpose}). "
                "Script it with 'model:' rules, or choose a language model such as 'ollama:gemma3:4b'."
            )
        talk = _read_conversation(request.messages, request.tools)
        requests = _next_calls(talk, answered=bool(await self._answer(talk, window=False)))
        answer = "" if requests else _closing(talk, await self._answer(talk, window=True))
        return Reply(content=answer, tool_requests=requests)

    async def _answer(self, talk: _Conversation, *, window: bool) -> str:
        """Return the answer to the question that was asked, or an empty text."""
        question = talk.reading.question
        if question is None:
            return ""
        since = [finding for result in talk.results if result.topic for finding in result.findings]
        earlier = talk.earlier if window and not talk.kept else ()
        found = answers.answer_candidates(since if talk.kept else talk.findings, earlier)
        chosen = answers.best_answers(question, found, await self._nearness(question, [one.text for one in found]))
        if talk.kept and not chosen:
            return " ".join(answers.topic_answer(topic, value, question.text) for topic, value in talk.kept.items())
        return answers.quotation_answer(chosen) if chosen else ""

    async def _nearness(self, question: ParsedQuestion, texts: Sequence[str]) -> Mapping[str, float]:
        """Return the cosine of the question and each text; nothing without an embedder, or where it cannot answer."""
        if self._embedder is None or not texts:
            return {}
        try:
            asked = await self._embedder.embed([question.query], Purpose.QUERY)
            said = await self._embedder.embed(texts, Purpose.DOCUMENT)
        except MemstoryError:
            # The words alone decide then.
            return {}
        return {text: float(near) for text, near in zip(texts, said @ asked[0], strict=True)}


def _read_conversation(messages: Sequence[Message], announced: Sequence[ToolSchema]) -> _Conversation:
    """Read messages; only what the user said decides what is done, system and tool texts never do."""
    at = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
    earlier = tuple(message.content for message in messages[: at or 0] if message.role == "user")
    context = Context()
    for text in earlier:
        context = next_context(context, text, read_message(text, context))
    later = messages[at + 1 :] if at is not None else []
    requests = [request for message in later for request in message.tool_requests]
    texts = [message.content for message in later if message.role == "tool"]
    return _Conversation(
        reading=Reading() if at is None else read_message(messages[at].content, context),
        earlier=earlier,
        results=[tools.read_result(request, text) for request, text in zip(requests, texts, strict=False)],
        roles=tools.assign_roles(announced),
        known=context.known,
    )


def _next_calls(talk: _Conversation, *, answered: bool) -> tuple[ToolRequest, ...]:
    """Return the calls to make now, none that was made before: of several rounds the first that has a new one."""
    made = [result.request for result in talk.results]
    for calls in _rounds(talk, answered=answered):
        new = [one for at, one in enumerate(calls) if one not in made and one not in calls[:at]]
        if new:
            return tuple(new)
    return ()


def _closing(talk: _Conversation, answer: str) -> str:
    """Return what is said at the end: what was kept or not, what was forgotten, and the answer."""
    reading = talk.reading
    parts = [*_on_saves(talk), *([_on_forgetting(talk)] if reading.forget else [])]
    parts += [_not_saved(said) if said else "I have not saved anything." for said in reading.unsaved]
    if reading.lists:
        told = [finding for finding in talk.findings if not finding.topic]
        named = {finding.topic: finding.text for finding in talk.findings if finding.topic}
        parts.append(answers.overview_answer({**talk.kept, **named}, answers.answer_candidates(told, talk.earlier)))
    if reading.question is not None:
        failure = next((result.failure for result in talk.results if result.failure), "")
        parts.append(answer or f"{answers.UNKNOWN} {failure}".strip())
    return " ".join(parts) or lexicon.REPLIES[reading.talk]


def _rounds(talk: _Conversation, *, answered: bool) -> Iterator[list[ToolRequest]]:
    reading, roles = talk.reading, talk.roles
    yield _recalls(talk, [fact.topic for fact in reading.facts if fact.ends or fact.topic.endswith(lexicon.OF_MANY)])
    yield [request for fact in reading.facts for request in _save(talk, fact)]
    if reading.forget:
        yield from _forget(talk, reading.forget)
    if reading.lists:
        queries = ["*"] if roles.search and tools.can_list_all(roles.search) else _BROAD
        found = [*_recalls(talk, [f"user.{name}" for name in _COMMON]), *_searches(talk, *queries)]
        yield found if roles.lists is None else [tools.tool_request(roles.lists)]
    if reading.question is not None and not answered:
        yield _recalls(talk, reading.question.keys)
        yield _searches(talk, reading.question.query)


def _recalls(talk: _Conversation, keys: Sequence[str]) -> list[ToolRequest]:
    return [tools.tool_request(talk.roles.recall_topic, key=key) for key in keys if talk.roles.recall_topic]


def _searches(talk: _Conversation, *queries: str) -> list[ToolRequest]:
    return [tools.tool_request(talk.roles.search, query=query) for query in queries if talk.roles.search]


def _save(talk: _Conversation, fact: StatedFact) -> list[ToolRequest]:
    """Save a fact; one that says that a value is over replaces this value, and no other."""
    kept = talk.kept.get(fact.topic, "")
    if fact.ends and fact.ends.casefold() not in kept.casefold():
        fact = whole_statement(fact.said)
    elif fact.topic.endswith(lexicon.OF_MANY) and not fact.correction:
        given, beside = fact.ends or fact.value, kept.split(" and ") if kept else []
        beside = [one for one in beside if one.casefold() != given.casefold()]
        fact = replace(fact, value=" and ".join(beside if fact.ends and beside else [*beside, fact.value]))
    if talk.roles.save_topic is not None and fact.of_the_world:
        # A memory with topics takes in every turn by itself; one that only keeps notes needs a call.
        return []
    if talk.roles.save_topic is not None:
        return [tools.tool_request(talk.roles.save_topic, key=fact.topic, text=fact.value)]
    return [tools.tool_request(talk.roles.note, text=fact.said)] if talk.roles.note else []


def _forget(talk: _Conversation, thing: str) -> Iterator[list[ToolRequest]]:
    """Yield the look for what is to be forgotten, then the calls that forget it."""
    # What a value had replaced has the same key; it must not be the answer again.
    said = [fact.topic for fact in facts_in(thing, talk.known) if not fact.topic.endswith(lexicon.OF_MANY)]
    asked = parse_question(thing, talk.known)
    question = replace(asked, keys=[*asked.keys, *said])
    if any("id" in tool.parameters for tool in talk.roles.forgets):
        shown = [tools.tool_request(talk.roles.lists)] if talk.roles.lists else []
        yield [*_recalls(talk, question.keys), *(shown or _searches(talk, thing))]
    elif talk.roles.save_topic and not talk.roles.forgets:
        # Without a tool that forgets, the topic can at least lose its value.
        yield _recalls(talk, question.keys)
        yield [tools.tool_request(talk.roles.save_topic, key=topic, text=answers.FORGOTTEN) for topic in talk.kept]
    what = {"key": question.keys, "id": _ids(talk, question), "query": [thing], "text": [thing]}
    roles = talk.roles.forgets
    yield [tools.tool_request(tool, **{kind: one}) for tool in roles for kind in tool.parameters for one in what[kind]]


def _ids(talk: _Conversation, question: ParsedQuestion) -> list[str]:
    """Return the ids of the memories that say what is to be forgotten, and of the answers that repeated it."""
    echo = re.compile("|".join(rf"\b{re.escape(value)}(?!\w)" for value in talk.kept.values()) or "(?!)")
    saying = [
        finding.id
        for finding in talk.findings
        if finding.topic in question.keys
        or echo.search(finding.answer)
        or any(
            answers.answer_score(question, one, None) >= 1 for one in split_sentences(finding.text or finding.answer)
        )
    ]
    return [one for one in saying if one][:_MOST_FORGOTTEN]


def _on_saves(talk: _Conversation) -> Iterator[str]:
    """Acknowledge what a tool has stored, in the user's own words, and nothing else."""
    writes = [result for result in talk.results if tools.is_save(result.request)]
    stored = " ".join(str(value) for one in writes if not one.failure for value in one.request.arguments.values())
    has_tool = talk.roles.save_topic or talk.roles.note
    failure = next((one.failure for one in writes if one.failure), "" if has_tool else "I have no tool for it.")
    missing = next((one.missing for one in writes if one.missing), "")
    if missing:
        # To repeat what was said would be to say that all of it is there.
        yield f"I left {missing} out of what I keep."
        return
    for said in dict.fromkeys(fact.said for fact in talk.reading.facts):
        values = [fact.value for fact in talk.reading.facts if fact.said == said]
        is_stored = said in stored or all(value in stored for value in values)
        yield f'I will remember: "{said}".' if is_stored else f"{_not_saved(said)} {failure}".strip()


def _not_saved(said: str) -> str:
    # By a tool, for many memories take each turn in by themselves.
    return f'I have not saved this by a tool: "{said}".'


def _on_forgetting(talk: _Conversation) -> str:
    done = [result for result in talk.results if tools.is_forget(result.request)]
    failures = [result.failure for result in done if result.failure]
    if len(done) > len(failures):
        return "I have forgotten that, as far as I found it."
    if talk.roles.forgets:
        return f"I could not forget that. {failures[0]}" if failures else "I found no such memory to forget."
    saves = [one.request.arguments.values() for one in talk.results if tools.is_save(one.request) and not one.failure]
    emptied = " and ".join(one for one in talk.kept if any({one, answers.FORGOTTEN} <= {*save} for save in saves))
    what = f"I have emptied {emptied}; what else was said stays stored." if emptied else "What is stored stays."
    return f"I have no tool to forget with. {what} {_BY_HAND}"
