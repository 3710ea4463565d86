"""Turns, sessions and what goes wrong between them."""

import asyncio
import json
from datetime import timedelta

import pytest

from memstory.contract.models import ChatModelUnavailableError
from memstory_reference.errors import InputError
from memstory_reference.systems.layers import extraction
from memstory_reference.systems.layers.identity import OwnerMissingError, hash_session_id, resolve_owner_id
from memstory_reference.systems.layers.records import Arc, Fact, Layer, Rule
from memstory_reference.systems.layers.sessions import EndReason
from memstory_reference.systems.layers.settings import MemoryMode
from memstory_reference.targets.environment_ports import FaultSwitch

LONG = [
    "My sister is a pilot and flies to the northern islands every week of the year.",
    "Next month she wants to take me along, if the weather over there is good.",
    "There are northern lights to be seen, so a warm coat is what one needs.",
]


def facts(*objects, category="interest", predicate="LIKES"):
    found = [
        {"category": category, "subject": "User", "predicate": predicate, "object": one, "evidence_quote": one}
        for one in objects
    ]
    return json.dumps({"facts": found})


async def talk(service, who, texts=LONG):
    for text in texts:
        await service.turn(text, who)
    await service.settle()


async def test_the_reply_does_not_wait_for_the_extractor(open_layers, by_purpose):
    gate = asyncio.Event()

    async def extracted():
        await gate.wait()
        return facts("tea")

    service = await open_layers(model=by_purpose(extract_semantic=lambda _: extracted()))
    who = await service.who("ann", "t")
    answer = await service.turn("I like tea", who)
    assert answer.answer == "I see."
    assert await service.records.list_records(who.owner) == []
    gate.set()
    await service.settle()
    assert len(await service.records.list_records(who.owner)) == 1


class HeldStore:
    """A store that does what it is asked, and says so once its gate is open."""

    def __init__(self, store):
        self._store = store
        self.gate, self.is_held = asyncio.Event(), asyncio.Event()
        self.gate.set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def arun(self, *args, **named):
        found = await self._store.arun(*args, **named)
        if not self.gate.is_set():
            self.is_held.set()
            await self.gate.wait()
        return found


async def test_a_turn_whose_caller_goes_away_while_it_is_saved_is_extracted_all_the_same(open_layers, by_purpose):
    held = []

    def wrap(store):
        held.append(HeldStore(store))
        return held[0]

    def answer(_):
        held[0].gate.clear()
        return "I see."

    service = await open_layers(model=by_purpose(chat=answer, extract_semantic=facts("tea")), wrap=wrap)
    who = await service.who("ann", "t")
    turn = asyncio.create_task(service.turn("I like tea", who))
    await held[0].is_held.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    held[0].gate.set()
    await service.settle()
    assert len(await service.records.list_records(who.owner)) == 1


@pytest.mark.parametrize("reason", [EndReason.EXPLICIT, EndReason.SHUTDOWN])
async def test_the_end_of_a_session_waits_for_a_turn_whose_caller_went_away(open_layers, by_purpose, reason):
    gate, is_asked = asyncio.Event(), asyncio.Event()

    class WaitingStore(HeldStore):
        async def arun(self, *args, **named):
            if not self.gate.is_set():
                is_asked.set()
                await gate.wait()
            return await self._store.arun(*args, **named)

    held = []

    def wrap(store):
        held.append(WaitingStore(store))
        return held[0]

    def answer(_):
        held[0].gate.clear()
        return "I see."

    service = await open_layers(model=by_purpose(chat=answer), wrap=wrap)
    who = await service.who("ann", "t")
    turn = asyncio.create_task(service.turn("I like tea", who))
    await is_asked.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    end_all = reason is EndReason.SHUTDOWN
    ending = asyncio.create_task(service.end_all(reason) if end_all else service.end(who, reason))
    for _ in range(8):
        await asyncio.sleep(0)
    gate.set()
    assert await ending
    await service.settle()
    assert await service.buffer(who) is None


async def test_a_lane_that_breaks_leaves_the_other_and_the_answer(open_layers, by_purpose):
    rules = '{"rules": [{"rule": "Be brief.", "explicit": true, "evidence_quote": "be brief"}]}'
    service = await open_layers(model=by_purpose(extract_semantic=RuntimeError("bug"), extract_procedural=rules))
    who = await service.who("ann", "t")
    assert (await service.turn("From now on be brief", who)).answer == "I see."
    await service.settle()
    (report,) = service.diagnostics(who)
    assert report["semantic"] == {"error": "RuntimeError"}
    assert report["procedural"]["commit"] == 1
    assert len(await service.records.list_records(who.owner)) == 1


async def test_a_turn_that_the_model_could_not_extract_is_extracted_at_the_end(open_layers, by_purpose):
    model = by_purpose(extract_semantic=None)
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    await talk(service, who, ["I like tea"])
    assert await service.records.list_records(who.owner) == []
    model.answers["extract_semantic"] = facts("tea")
    await service.end(who, EndReason.EXPLICIT)
    assert len(await service.records.list_records(who.owner)) == 1


async def test_words_of_crisis_are_logged_though_no_model_answers(open_layers, by_purpose):
    model = by_purpose(chat=None)
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    with pytest.raises(ChatModelUnavailableError):
        await service.turn("I want to die", who)
    assert len(await service.ports.crisis.alist(who.owner)) == 1


async def test_a_reconciler_that_fails_holds_the_candidate_and_the_end_stores_it(open_layers, by_purpose):
    model = by_purpose(extract_semantic=lambda prompt: facts("tea") if "tea" in prompt else facts("silence"))
    model.answers["reconcile"] = None
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    await talk(service, who, ["I like tea", "I like silence"])
    assert len(await service.records.list_records(who.owner)) == 1
    assert len((await service.buffer(who)).held) == 1
    await talk(service, who, ["I like silence"])
    await service.end(who, EndReason.EXPLICIT)
    assert len(await service.records.list_records(who.owner, [Layer.SEMANTIC])) == 2


async def test_what_the_assistant_says_is_no_evidence_and_no_support(open_layers, by_purpose):
    model = by_purpose(chat="You like sailing, do you not? Sailing!", extract_semantic=facts("sailing"))
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    await talk(service, who, ["Hello", "Hello again"])
    await service.end(who, EndReason.EXPLICIT)
    assert await service.records.list_records(who.owner) == []


@pytest.mark.parametrize("reason", EndReason)
async def test_every_trigger_leaves_the_same(open_layers, clock, reason):
    service = await open_layers()
    who = await service.who("ann", "t")
    await talk(service, who)
    match reason:
        case EndReason.IDLE:
            await clock.move(minutes=20)
            await service.settle()
        case EndReason.SHUTDOWN:
            await service.end_all(reason)
            await service.close()
            service = await open_layers()
        case EndReason.VOICE:
            await service.finalise_voice([], who)
        case _:
            await service.end(who, reason)
    kept = {str(one.layer): one.content for one in await service.records.list_records(who.owner)}
    assert set(kept) == {"semantic", "episodic"}
    assert kept["semantic"].object.startswith("a pilot")
    assert "northern lights" in kept["episodic"].summary
    assert await service.end(who, EndReason.EXPLICIT) is None
    assert len(await service.records.list_records(who.owner)) == 2


async def test_two_ends_at_once_leave_one_arc(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await talk(service, who)
    reports = await asyncio.gather(*(service.end(who, EndReason.WEB) for _ in range(5)))
    assert sum(report is not None for report in reports) == 1
    assert len(await service.records.list_records(who.owner, [Layer.EPISODIC])) == 1


async def test_a_voice_transcript_is_taken_whole(open_layers):
    service = await open_layers()
    who = await service.who("ann", "call")
    await service.finalise_voice([(text, "Yes.") for text in LONG], who)
    assert len(await service.records.list_records(who.owner, [Layer.EPISODIC])) == 1
    assert len(await service.records.list_records(who.owner, [Layer.SEMANTIC])) == 1


async def test_a_clock_that_goes_backwards_ends_nothing_and_breaks_nothing(open_layers, clock):
    service = await open_layers()
    who = await service.who("ann", "t")
    await talk(service, who, LONG[:1])
    await clock.move(hours=-3)
    await talk(service, who, LONG[1:])
    assert await service.end(who, EndReason.IDLE) is None
    assert (await service.buffer(who)).turn_count == 3
    await clock.move(hours=3, minutes=20)
    await service.settle()
    assert await service.buffer(who) is None
    assert len(await service.records.list_records(who.owner, [Layer.EPISODIC])) == 1


async def test_a_session_left_by_a_dead_process_ends_at_the_next_opening(open_layers, clock):
    service = await open_layers()
    who = await service.who("ann", "t")
    await talk(service, who)
    await service.close()
    clock.moment += timedelta(minutes=21)
    service = await open_layers()
    assert await service.buffer(who) is None
    assert len(await service.records.list_records(who.owner, [Layer.EPISODIC])) == 1


async def test_a_session_goes_on_after_it_ended(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    for _ in range(2):
        await talk(service, who)
        await service.end(who, EndReason.EXPLICIT)
    assert len(await service.records.list_records(who.owner, [Layer.EPISODIC])) == 2


async def test_a_store_that_is_gone_in_mid_turn_is_told_in_the_diagnostics(open_layers):
    from memstory_reference.targets.layers import FaultyLayersStore  # noqa: PLC0415  (harness's edge)

    switch = FaultSwitch("store")
    service = await open_layers(wrap=lambda store: FaultyLayersStore(store, switch))
    who = await service.who("ann", "t")
    switch.mode = "down"
    answer = await service.turn("I live in Oslo.", who)
    assert answer.answer
    assert any(note.startswith("store: ") for note in answer.notes)
    await service.settle()
    switch.mode = "ok"
    assert await service.buffer(who) is None
    assert await service.records.list_records(who.owner) == []


async def test_a_batch_that_breaks_at_the_end_leaves_the_session_to_be_ended_again(open_layers):
    from memstory_reference.targets.layers import FaultyLayersStore  # noqa: PLC0415  (harness's edge)

    switch = FaultSwitch("store")
    service = await open_layers(wrap=lambda store: FaultyLayersStore(store, switch))
    who = await service.who("ann", "t")
    await talk(service, who, ["I like short answers.", "I like short answers.", *LONG])
    switch.mode = "garbage"
    with pytest.raises(Exception, match="second record"):
        await service.end(who, EndReason.EXPLICIT)
    switch.mode = "ok"
    assert await service.records.list_records(who.owner, [Layer.EPISODIC, Layer.PROCEDURAL]) == []
    report = await service.end(who, EndReason.EXPLICIT)
    assert report.arc is not None
    assert report.promoted == ["repetition"]


async def test_the_embedder_is_never_asked_in_incognito(open_layers, tmp_path):
    class Loud:
        model, dimension = "loud", 2

        async def embed(self, texts, purpose):
            raise AssertionError("asked")

    service = await open_layers(mode=MemoryMode.INCOGNITO, embedder=Loud())
    who = await service.who("ann", "t")
    await talk(service, who)
    await service.end(who, EndReason.EXPLICIT)
    assert len(await service.records.search(who.owner, "pilot")) == 2
    assert not (tmp_path / "layers").exists()


async def test_parallel_turns_of_one_session_are_all_kept(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await asyncio.gather(*(service.turn(f"Word number {number} of many.", who) for number in range(10)))
    await service.settle()
    assert (await service.buffer(who)).turn_count == 10
    assert len({turn.number for turn in (await service.buffer(who)).turns}) == 10


@pytest.mark.parametrize("said", ["", "  \n", "x" * 100_001])
async def test_a_turn_of_nothing_or_too_much_is_refused(open_layers, said):
    service = await open_layers()
    with pytest.raises(InputError, match="100000"):
        await service.turn(said, await service.who("ann", "t"))


async def test_a_fact_is_edited_only_into_a_fact_and_only_by_its_owner(open_layers):
    service = await open_layers()
    fact = Fact(category="work", subject="User", predicate="WORKS_AS", object="baker", evidence_quote="q")
    (done,) = await service.records.remember("user:ann", None, [fact])
    with pytest.raises(InputError, match="layer"):
        await service.records.edit("user:ann", done.id, Arc(summary="They talked."))
    with pytest.raises(InputError, match="no record"):
        await service.records.edit("user:eve", done.id, fact)
    assert (await service.records.forget_records("user:eve", [done.id])).is_empty


async def test_records_carry_the_hash_of_the_session_and_never_its_name(open_layers, tmp_path):
    service = await open_layers()
    who = await service.who("ann", "quimperlune-session")
    await talk(service, who)
    await service.end(who, EndReason.EXPLICIT)
    await service.close()
    written = b"".join(path.read_bytes() for path in (tmp_path / "layers").iterdir())
    assert who.session.encode() in written
    assert b"quimperlune" not in written


async def test_a_contradiction_of_a_rule_replaces_it_without_a_model(open_layers):
    service = await open_layers()
    texts = ["always end your answer with one short summary of what we said here",
             "never end your answer with one short summary of what we said here"]  # fmt: skip
    for text in texts:
        await service.records.remember("user:a", None, [Rule(rule=text, explicit=True, evidence_quote=text)])
    (rule,) = await service.records.list_records("user:a", [Layer.PROCEDURAL])
    assert rule.content.rule.startswith("never")


async def test_forgetting_an_owner_leaves_the_crisis_log_alone(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await talk(service, who, ["My sister is a pilot.", "I want to die."])
    await service._logs.give_feedback(who, "helpful")
    assert await service.forget_owner(who.owner) == {"sessions": 1, "records": 1, "feedback": 1}
    assert len(await service.ports.crisis.alist(who.owner)) == 1
    assert await service.ports.feedback.alist(who.owner) == []


@pytest.mark.parametrize("state", [{}, {"user_id": None, "session_id": " "}, {"user_id": "", "session_id": "\n"}])
def test_nobody_owns_nothing(state):
    with pytest.raises(ValueError, match="user_id"):
        resolve_owner_id(state, b"key")
    with pytest.raises(OwnerMissingError):
        resolve_owner_id(state, b"key")


@pytest.mark.parametrize("bad", [7, ["ann"], {"$ne": ""}, "x" * 513, "a\x00b"])
def test_an_owner_is_a_short_printable_text(bad):
    with pytest.raises(InputError, match="user_id"):
        resolve_owner_id({"user_id": bad}, b"key")


def test_a_user_and_a_session_of_one_name_are_apart():
    owners = {resolve_owner_id({"user_id": "t1"}, b"k"), resolve_owner_id({"session_id": "t1"}, b"k")}
    owners.add(resolve_owner_id({"user_id": f"session:{hash_session_id('t1', b'k')}"}, b"k"))
    assert len(owners) == 3


def test_the_hash_is_keyed_and_long():
    assert len(hash_session_id("t1", b"k")) * 4 >= 128
    assert hash_session_id("t1", b"k") != hash_session_id("t1", b"other")


@pytest.mark.parametrize(
    ("one", "other"), [("ann", " ann"), ("ann", "ann "), ("ann", "ANN"), ("a\u0144n", "an\u0301n")]
)
def test_an_owner_is_nobody_who_is_only_written_alike(one, other):
    assert [resolve_owner_id({"user_id": name}, b"key") for name in (one, other)] == [f"user:{one}", f"user:{other}"]


async def test_what_was_corrected_a_moment_ago_is_the_answer(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await service.turn("I live in Lisbon.", who)
    await service.turn("I live in Porto.", who)
    answer = (await service.turn("Where do I live?", who)).answer
    assert "Porto" in answer
    assert "Lisbon" not in answer


async def test_a_correction_replaces_what_was_said_before_a_few_questions(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    asked = ["What is my name?", "Where do I live?", "Do I like tea?", "Who is Bo?", "What do I do?"]
    await talk(service, who, ["Meera starts on the 4th.", *asked, "Oops, I misspoke, Meera starts on the 11th."])
    (record,) = await service.records.list_records(who.owner)
    assert record.content.object == "on the 11th"


async def test_long_talks_at_once_read_each_turn_a_few_times_only(open_layers, monkeypatch):
    read, read_sentence = [], extraction.read_sentence
    monkeypatch.setattr(extraction, "read_sentence", lambda *said: read.append(said) or read_sentence(*said))
    service = await open_layers()
    talkers, turns = [await service.who(name, "t") for name in ("ann", "bea", "cem", "dan", "eva")], 48
    for at in range(turns):
        for who in talkers:
            await service.turn(f"My shop number {who.owner} {at} opens at 9.", who)
        await service.settle()
    assert len(read) < 4 * turns * len(talkers)
