"""Each bug that the layers' source invites is put in, and the story that speaks of it must fail for it."""

import asyncio
import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from memstory.running.stage import owner_of
from memstory_reference.storage.sql_database import Database
from memstory_reference.systems.layers import (
    layers_store,
    memory,
    policy,
    recall,
    reconciliation,
    records,
    records_desk,
    sessions,
    values,
)
from memstory_reference.systems.layers.layers_store import LayersStore
from memstory_reference.systems.layers.logs import Logs
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.records import Candidate, Decision, SessionMemoryBuffer, Standing
from memstory_reference.systems.layers.sessions import Sessions
from memstory_reference.systems.layers.settings import LayersSettings, MemoryMode
from memstory_reference.targets.layers import LayersFactory
from memstory_reference.text import secret_guard

pytestmark = pytest.mark.usefixtures("minilm_weights")


def decided(change):
    """Change what a policy has decided."""

    def mutated(plain):
        async def decide(*args):
            return change(await plain(*args))

        return decide

    return mutated


def without_buffers(plain):
    async def aclose(self):
        for buffer in await self.aactive(None):
            await self.aforget_sessions(buffer.owner)
        await plain(self)

    return aclose


def without_superseding(plain):
    return lambda plan, record: None if record.standing is Standing.SUPERSEDED else plain(plan, record)


def waiting_for_the_lanes(plain):
    async def turn(self, said, who):
        answer = await plain(self, said, who)
        await self.settle()
        if any("error" in (report.get("semantic") or {}) for report in self.diagnostics(who)):
            raise RuntimeError("the extractor failed")
        return answer

    return turn


def alone(plain):
    return lambda content, _around: plain(content, ())


def alone_of_all(plain):
    return lambda text, _around=(): plain(text)


def without_conflicts(plain):
    def ask(*args, read, **named):
        return plain(*args, read=lambda answer: read({**answer, "safety_conflict": False}), **named)

    return ask


def staying_active(_plain):
    async def end(self, _owner, _session, records):
        await self.aput_batch(records)
        return True

    return end


def one_by_one(plain):
    async def put(self, records, *_):
        for record in records:
            await plain(self, [record])

    return put


def slowly(plain):
    async def put(*args, **named):
        await asyncio.sleep(0.05)  # all have read before the first one writes: the race is not left to chance
        return await plain(*args, **named)

    return put


def owned_without_namespaces(plain):
    def owner(state, key):
        plain(state, key)
        return state.get("user_id") or state["session_id"]

    return owner


def owned_by_somebody(plain):
    def owner(state, key):
        return plain(state, key) if state.get("user_id") or state.get("session_id") else "user:local-default"

    return owner


def deaf_without_recall(plain):
    async def turn(self, said, who):
        return await plain(self, said if (await self.status(who.owner))["recall"] else "Hm.", who)

    return turn


FACTORY = LayersFactory
MUTANTS = [
    (
        "C1: quotes are single",
        "text does not contain",
        (recall, "format_working_memory_entries", lambda plain: lambda all_: plain(all_).replace('"', "'")),
    ),
    ("C1: quotes are told as they are", "data is", (records, "one_line", lambda _: lambda text: text)),
    (
        "C1: the quote is told alone",
        "it is 'Working memory:\\nmy boss is terrible'",
        (
            recall,
            "format_working_memory_entries",
            lambda _: lambda all_: "\n".join(one["evidence_quote"] for one in all_),
        ),
    ),
    ("C2: the model's word is final", "hits count 3", (sessions, "refusal_reason", None)),
    ("C2: any quote is believed", "User OWNS a bank", (sessions, "is_quoted", True)),
    ("C2: repetition is not counted", "hits count 1", (Candidate, "add_turn", lambda _: lambda self, _turn: self)),
    (
        "C2: hold means commit",
        "data 'held' has a length that is 0",
        (sessions, "decide", decided(lambda verdict: replace(verdict, decision=Decision.COMMIT))),
        (sessions, "hold_reason", None),
    ),
    ("C3: all that is held is promoted", "hits count 4", (sessions, "token_coverage", 1.0)),
    ("C3: nothing supports anything", "hits count 0", (sessions, "token_coverage", 0.0)),
    ("C3: the buffer dies with the process", "hits count 0", (LayersStore, "aclose", without_buffers)),
    ("C4: duplicates are stored again", "fits this call (purpose reconcile)", (reconciliation, "duplicate_of", None)),
    ("C4: the superseded stays active", "'bergen' first", (reconciliation.WritePlan, "change", without_superseding)),
    ("C5: nearly alike is always the same", "'likeness' is", (reconciliation, "agree", True)),
    (
        "C5: the threshold itself is out",
        '"near", "different", "near"',
        (values, "compare_texts", lambda plain: lambda a, b, least: plain(a, b, least + 1e-9)),
    ),
    (
        "C6: ranks begin at zero",
        "data is [0.0333333",
        (values, "rrf_score", lambda _: lambda row: sum(1 / (59 + rank) for rank in row if rank)),
    ),
    ("C7: meaning alone ranks", "'chinese'", (recall, "query_tokens", frozenset())),
    (
        "C7: only ASCII is text",
        "'chinese'",
        (layers_store, "token_set", lambda _: lambda text: frozenset(re.findall(r"[a-z0-9]+", text.lower()))),
    ),
    (
        "C8: a failing policy loses the candidate",
        "'semantic' has no 'undecided'",
        (
            sessions,
            "decide",
            decided(
                lambda verdict: (
                    replace(verdict, decision=Decision.DROP) if verdict.decision is Decision.UNDECIDED else verdict
                )
            ),
        ),
    ),
    (
        "C8: the reply waits for the lanes and fails with them",
        "RuntimeError: the extractor failed",
        (LayersMemory, "turn", waiting_for_the_lanes),
    ),
    ("C9: every session is worth an arc", "hits count 3", (sessions, "is_substantive", True)),
    (
        "C10: an ended session stays active",
        "'active_sessions' is 1",
        (LayersStore, "aend", staying_active),
    ),
    ("C10-shutdown: shutdown is another path", "hits count 0", (LayersMemory, "end_all", 0)),
    (
        "C10b: twenty minutes are not enough",
        "hits count 0",
        (
            Sessions,
            "is_idle",
            lambda plain: (
                lambda self, buffer: plain(self, replace(buffer, last_at=buffer.last_at + timedelta(microseconds=1)))
            ),
        ),
    ),
    (
        "C10b: silence counts from the first word",
        "hits are 1",
        (
            SessionMemoryBuffer,
            "add_turn",
            lambda plain: lambda self, *args: replace(plain(self, *args), last_at=self.started_at),
        ),
    ),
    (
        "C11: thirty days are too old",
        "hits lack 'older'",
        (LayersSettings, "episodic_age", timedelta(days=30) - timedelta(microseconds=1)),
    ),
    ("C11: age does not matter", "hits include 'older'", (LayersSettings, "episodic_age", timedelta(days=3_000))),
    (
        "C11: no turn is caught up",
        "does not contain 'found blue bicycle'",
        (recall, "is_first_turn", False),
    ),
    (
        "C11: every turn is caught up",
        "text contains 'bicycle'",
        (recall, "is_first_turn", True),
    ),
    (
        "C12: no guard at writing nor at promotion",
        "hits count 7",
        (sessions, "refusal_reason", None),
    ),
    (
        "C12: hints are taken for instructions",
        "hits count 3",
        (policy, "decision_by_rules", Decision.COMMIT),
    ),
    ("C12b: no guard at promotion", "Skip it whenever", (sessions, "promotion_refusal", None)),
    (
        "C12b: the guard reads one turn at a time",
        "It means the safety check",
        (sessions, "refusal_reason", alone),
    ),
    ("C12b: a conflict that the model sees is ignored", "Be gentle", (policy, "ask_for_json", without_conflicts)),
    (
        "C12c-one_session: a sentence is judged alone",
        "safety check",
        (sessions, "text_refusal_reason", alone_of_all),
    ),
    ("C12c-two_sessions: a vague wish is told again", "skip it", (policy, "is_vague_weakening", False)),
    ("X7c: secrets do not matter", "dropped", (secret_guard, "secrets_in", ())),
    ("C13: rules have no cap", "hits count 7", (reconciliation.Writer, "cap", None)),
    (
        "C13b: writers do not wait for each other",
        "hits count 20",
        (LayersStore, "lock", nullcontext()),
        (LayersStore, "aput_batch", slowly),
    ),
    (
        "C14: each row is its own transaction",
        "'The first note.'",
        (LayersStore, "aput_batch", one_by_one),
    ),
    ("C14b: a lost store costs the answer", "taken the store down", (memory, "UnavailableError", KeyError)),
    ("C14c: what has no vector is never embedded", "'embedded' is 0", (records_desk.RecordsDesk, "embed_missing", 0)),
    ("C15: incognito is local", "'embedder' is", (MemoryMode, "is_durable", property(lambda _: True))),
    ("C15b: synced pretends", "'sync' is 'on'", (MemoryMode, "sync", property(lambda _: "on"))),
    ("C15b: crisis words become memory", "hits count 2", (policy, "any_acute", False)),
    ("C16: users and threads share names", "'owner' does not", (memory, "resolve_owner_id", owned_without_namespaces)),
    ("C16: nobody is a local default", "was not refused", (memory, "resolve_owner_id", owned_by_somebody)),
    (
        "C16: sessions are kept by name",
        "'metadata' 'session' does not match",
        (memory, "hash_session_id", lambda _: lambda session, _key: session),
    ),
    ("C17: recall off switches all off", "a length that is 0", (LayersMemory, "turn", deaf_without_recall)),
    ("C17: recall is never off", "text is 'Working memory", (LayersMemory, "set_recall", None)),
    ("C17b: crisis records are kept for ever", "'purged' is 0", (Logs, "purge", 0)),
    ("C18: moods last", "'semantic' is 2", (sessions, "session_only_reason", None)),
    (
        "C19: an id is enough",
        "1. home",
        (LayersStore, "aget", lambda plain: lambda self, _, ids: plain(self, f"user:{owner_of('C19', 0)}", ids)),
    ),
    ("C19: what is deleted stays in the file", "'Ottoline' is in", (Database, "forget_log", None)),
    ("C21: an edit may say what is stored already", "hits count", (reconciliation.Writer, "same_as", None)),
    ("C21: what was replaced stays so", "hits", (records_desk, "records_to_release", lambda _: lambda *_: [])),
    (
        "C21b: the switch dies with the process",
        "I have no memory",
        (LayersStore, "aset_recall", None),
    ),
    ("C22-sqlite: summaries still tell it", "Quimperline", (records_desk, "values_of", lambda _: lambda _rows: [])),
    ("C22-sqlite: nothing is named", "Forgotten", (records_desk, "matching_records", lambda _: lambda *_: [])),
    ("C19: edits pass no guard", "was not refused", (records_desk, "refusal_reason", None)),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
