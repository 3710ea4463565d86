"""Each bug that the layers' source invites is put in, and the story that speaks of it must fail for it."""

import asyncio
import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from memstory_reference.storage.database_store import Database
from memstory_reference.systems.layers import records_desk, service
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.modes import MemoryMode
from memstory_reference.systems.layers.operations import dedup, promotion
from memstory_reference.systems.layers.policy import guards, write
from memstory_reference.systems.layers.recall import prompting, retrieval
from memstory_reference.systems.layers.recall.retrieval import Retrieval
from memstory_reference.systems.layers.records import entries
from memstory_reference.systems.layers.records.candidates import Candidate, Decision, SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Standing
from memstory_reference.systems.layers.service import LayersService
from memstory_reference.systems.layers.stores import memory_store
from memstory_reference.systems.layers.stores.sqlite_rows_store import SqliteRows
from memstory_reference.systems.layers.stores.sqlite_store import SqliteStore
from memstory_reference.systems.layers.turns import lanes, session_end, writing
from memstory_reference.systems.layers.turns.session_end import SessionEnds
from memstory_reference.targets.layers import formulas
from memstory_reference.targets.layers.target import LayersFactory

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


def first_turns(always):
    return lambda plain: lambda *args, **named: plain(*args, **{**named, "is_first_turn": always})


def alone(plain):
    return lambda content, _around: plain(content, ())


def without_conflicts(plain):
    def ask(*args, read, **named):
        return plain(*args, read=lambda answer: read({**answer, "safety_conflict": False}), **named)

    return ask


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
        "quotes are single",
        "C1",
        "text does not contain",
        (prompting, "format_working_memory_entries", lambda plain: lambda all_: plain(all_).replace('"', "'")),
    ),
    ("quotes are told as they are", "C1", "data is", (entries, "one_line", lambda _: lambda text: text)),
    (
        "the quote is told alone",
        "C1",
        "it is 'Working memory:\\nmy boss is terrible'",
        (
            prompting,
            "format_working_memory_entries",
            lambda _: lambda all_: "\n".join(one["evidence_quote"] for one in all_),
        ),
    ),
    ("the model's word is final", "C2", "hits count 3", (lanes, "refused", None)),
    ("any quote is believed", "C2", "User OWNS a bank", (lanes, "is_quoted", True)),
    ("repetition is not counted", "C2", "hits count 1", (Candidate, "heard_again", lambda _: lambda self, _turn: self)),
    (
        "hold means commit",
        "C2",
        "data 'held' has a length that is 0",
        (lanes, "decide", decided(lambda verdict: replace(verdict, decision=Decision.COMMIT))),
        (lanes, "must_wait", None),
    ),
    ("all that is held is promoted", "C3", "hits count 4", (promotion, "coverage", 1.0)),
    ("nothing supports anything", "C3", "hits count 0", (promotion, "coverage", 0.0)),
    ("the buffer dies with the process", "C3", "hits count 0", (SqliteStore, "aclose", without_buffers)),
    ("duplicates are stored again", "C4", "fits this call (purpose reconcile)", (writing, "duplicate_of", None)),
    ("the superseded stays active", "C4", "'bergen' first", (writing.Plan, "change", without_superseding)),
    ("nearly alike is always the same", "C5", "'likeness' is", (dedup, "agree", True)),
    (
        "the threshold itself is out",
        "C5",
        '"near", "different", "near"',
        (formulas, "compare_texts", lambda plain: lambda a, b, least: plain(a, b, least + 1e-9)),
    ),
    (
        "ranks begin at zero",
        "C6",
        "data is [0.0333333",
        (formulas, "rrf_score", lambda _: lambda row: sum(1 / (59 + rank) for rank in row if rank)),
    ),
    ("meaning alone ranks", "C7", "'chinese'", (retrieval, "query_tokens", frozenset())),
    (
        "only ASCII is text",
        "C7",
        "'chinese'",
        (memory_store, "token_set", lambda _: lambda text: frozenset(re.findall(r"[a-z0-9]+", text.lower()))),
    ),
    (
        "a failing policy loses the candidate",
        "C8",
        "'semantic' has no 'hold'",
        (
            lanes,
            "decide",
            decided(lambda verdict: replace(verdict, decision=Decision.DROP) if verdict.by == "fallback" else verdict),
        ),
    ),
    (
        "the reply waits for the lanes and fails with them",
        "C8",
        "RuntimeError: the extractor failed",
        (LayersService, "turn", waiting_for_the_lanes),
    ),
    ("every session is worth an arc", "C9", "hits count 3", (session_end, "is_substantive", True)),
    (
        "an ended session stays active",
        "C10",
        "'active_sessions' is 1",
        (SqliteRows, "end", lambda _: lambda self, _owner, _session, records: self.put(records)),
    ),
    ("shutdown is another path", "C10-shutdown", "hits count 0", (LayersService, "end_all", 0)),
    (
        "twenty minutes are not enough",
        "C10b",
        "hits count 0",
        (
            SessionEnds,
            "is_idle",
            lambda plain: (
                lambda self, buffer: plain(self, replace(buffer, last_at=buffer.last_at + timedelta(microseconds=1)))
            ),
        ),
    ),
    (
        "silence counts from the first word",
        "C10b",
        "hits are 1",
        (
            SessionMemoryBuffer,
            "spoken",
            lambda plain: lambda self, *args: replace(plain(self, *args), last_at=self.started_at),
        ),
    ),
    (
        "thirty days are too old",
        "C11",
        "hits lack 'older'",
        (LayersConfig, "episodic_age", timedelta(days=30) - timedelta(microseconds=1)),
    ),
    ("age does not matter", "C11", "hits include 'older'", (LayersConfig, "episodic_age", timedelta(days=3_000))),
    (
        "no turn is caught up",
        "C11",
        "does not contain 'found blue bicycle'",
        (Retrieval, "load_memory_for_turn", first_turns(always=False)),
    ),
    (
        "every turn is caught up",
        "C11",
        "text contains 'bicycle'",
        (Retrieval, "load_memory_for_turn", first_turns(always=True)),
    ),
    (
        "no guard at writing nor at promotion",
        "C12",
        "hits count 7",
        (lanes, "refused", None),
        (promotion, "refused", None),
    ),
    (
        "hints are taken for instructions",
        "C12",
        "hits count 3",
        (write, "decision_by_rules", lambda plain: lambda content: replace(plain(content), decision=Decision.COMMIT)),
    ),
    ("no guard at promotion", "C12b", "Skip it whenever", (promotion, "refused", None)),
    (
        "the guard reads one turn at a time",
        "C12b",
        "It means the safety check",
        (lanes, "refused", alone),
        (promotion, "refused", alone),
    ),
    ("a conflict that the model sees is ignored", "C12b", "Be gentle", (write, "ask", without_conflicts)),
    ("rules have no cap", "C13", "hits count 7", (writing.Writer, "cap", None)),
    (
        "writers do not wait for each other",
        "C13b",
        "hits count 20",
        (SqliteStore, "lock", nullcontext()),
        (SqliteStore, "aput_batch", slowly),
    ),
    ("each row is its own transaction", "C14", "'The first note.'", (Database, "transaction", nullcontext())),
    ("a lost store costs the answer", "C14b", "taken the store down", (service, "UnavailableError", KeyError)),
    ("what has no vector is never embedded", "C14c", "'embedded' is 0", (records_desk.RecordsDesk, "embed_missing", 0)),
    ("incognito is local", "C15", "'embedder' is", (MemoryMode, "is_durable", property(lambda _: True))),
    ("synced pretends", "C15b", "'sync' is 'on'", (MemoryMode, "sync", property(lambda _: "on"))),
    ("crisis words become memory", "C15b", "hits count 2", (guards, "notice", None)),
    (
        "users and threads share names",
        "C16",
        "'owner' does not",
        (service, "resolve_owner_id", owned_without_namespaces),
    ),
    ("nobody is a local default", "C16", "was not refused", (service, "resolve_owner_id", owned_by_somebody)),
    (
        "sessions are kept by name",
        "C16",
        "'metadata' 'session' does not match",
        (service, "hash_session_id", lambda _: lambda session, _key: session),
    ),
    ("recall off switches all off", "C17", "a length that is 0", (LayersService, "turn", deaf_without_recall)),
    ("recall is never off", "C17", "text is 'Working memory", (LayersService, "set_recall", None)),
    ("crisis records are kept for ever", "C17b", "'purged' is 0", (LayersService, "purge_crisis_log", 0)),
    ("moods last", "C18", "'semantic' is 2", (promotion, "must_not_last", None)),
    (
        "an id is enough",
        "C19",
        "1. home",
        (SqliteRows, "get", lambda plain: lambda self, owner, ids: plain(self, owner.removesuffix(".eve"), ids)),
    ),
    ("what is deleted stays in the file", "C19", "'Ottoline' stands in", (Database, "forget_log", None)),
    ("edits pass no guard", "C19", "was not refused", (records_desk, "refused", None)),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
