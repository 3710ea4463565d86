"""Whatever callers give, the answer is a result or an InputError; what is refused is neither embedded nor written."""

import json
from datetime import UTC, datetime

import pytest

from memstory.contract.models import Reply
from memstory.contract.target import Query, Ref, Scope
from memstory_reference.errors import InputError

ANN = Scope(user="ann")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CARD = "4111 1111 1111 1111"
LONE = "half \ud800"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("facts", value) for value in ("abc", 5, None, [5], ["a" * 10_000], ["ok", LONE], ["x"] * 2000)),
        *(("id", value) for value in ("", " ", "a" * 1_000_000, 5, None, LONE, "two\nlines")),
        *(("narrative", value) for value in ("", 5, None, LONE, "a" * 100_001)),
        *(("task", value) for value in (5, None, LONE, "a" * 100_001)),
        *(("title", value) for value in (5, None, LONE, "a" * 10_000)),
        *(("rating", value) for value in (1000, -2.5, float("nan"), "1", True, 10**400)),
        *(("final_score", value) for value in (11, float("inf"), "9", True, 10**400)),
        *(("task_type", value) for value in ("gossip", 5, None, ["research"])),
        *(("sources", value) for value in ("abc", 5, [5], [LONE], ["s"] * 100_000)),
        *(("timestamp", value) for value in (datetime(2026, 1, 1), "yesterday", None, 5)),  # noqa: DTZ001
    ],
)
async def test_a_field_that_cannot_be_kept_is_refused_by_name(on_words, words, run_of, field, value):
    identifier, narrative = (value if field == one else one for one in ("id", "narrative"))
    others = {} if field in ("id", "narrative") else {field: value}
    with pytest.raises(InputError, match=field):
        await on_words.store([run_of(identifier, narrative, **others)], "ann")
    assert (words.texts, await on_words.recent("ann")) == ([], [])
    await on_words.close()


@pytest.mark.parametrize("field", ["title", "narrative", "task", "facts", "sources"])
async def test_a_secret_is_left_out_of_every_field(on_words, words, run_of, field):
    text = f"My card is {CARD} and my password is hunter22."
    given = {field: [text] if field in ("facts", "sources") else text}
    await on_words.store([run_of("run", given.pop("narrative", "Covered cards."), **given)], "ann")
    (kept,) = await on_words.recent("ann")
    assert "left out" in str(getattr(kept, field))
    assert not any(secret in f"{kept} {words.texts}" for secret in (CARD, "hunter22"))


async def test_arguments_of_a_wrong_kind_are_refused(on_words, run_of):
    await on_words.store([run_of("run", "Covered caching.")], "ann")
    calls = (
        *(lambda one=one: on_words.search(Query(text="caching", min_score=one), ANN) for one in ("x", True, 11)),
        *(lambda k=k: on_words.find("caching", "ann", k) for k in ("3", 1.5, True, -1, 10**19)),
        *(lambda text=text: on_words.find(text, "ann") for text in (None, 5, LONE, "a" * 20_000)),
        *(lambda sim=sim: on_words.find("caching", "ann", min_sim=sim) for sim in ("x", 2, float("nan"))),
        *(lambda r=r: on_words.feedback(Ref(id="run"), r, ANN) for r in ("x", None, True, 3, 10**400, float("nan"))),
        *(lambda one=one: on_words.feedback(Ref(id=one), 1, ANN) for one in (None, 5, LONE)),
        *(lambda one=one: on_words.get(Ref(id=one), ANN) for one in (None, 5, LONE)),
        *(lambda one=one: on_words.delete(Ref(id=one), ANN) for one in ("", 5, LONE)),
        *(lambda limit=limit: on_words.recent("ann", limit) for limit in ("x", -1, 1.5, 10**19)),
        *(
            lambda output=output: on_words.compress_and_store(task="t", output=output, owner="ann")
            for output in (None, 5, "", " ")
        ),
        lambda: on_words.compress_and_store(task=None, output="o", owner="ann"),
        lambda: on_words.compress_and_store(task="t", output="o", owner="ann", run_id=5),
        lambda: on_words.store("run", "ann"),
        lambda: on_words.store([None], "ann"),
    )
    for call in calls:
        with pytest.raises(InputError):
            await call()
    assert [one.id for one in await on_words.recent("ann")] == ["run"]


@pytest.mark.parametrize("field", ["title", "narrative", "task", "facts", "sources"])
async def test_a_secret_is_refused_on_every_way_in_where_they_are(open_words, words, run_of, field):
    on_words = await open_words(secrets="refuse")
    text = f"My card is {CARD} and my password is hunter22."
    given = {field: [text] if field in ("facts", "sources") else text}
    narrative = given.pop("narrative", "Covered cards.")
    with pytest.raises(InputError, match="payment card") as refusal:
        await on_words.store([run_of("run", narrative, **given)], "ann")
    assert CARD not in str(refusal.value)
    assert (words.texts, await on_words.recent("ann")) == ([], [])


async def test_a_secret_in_a_run_s_output_is_left_out_before_it_is_summed_up(on_words):
    done = await on_words.compress_and_store(task="t", output="It used sk-abcdefghij0123456789 twice.", owner="ann")
    assert "left out: the key of a service" in done.warnings
    (kept,) = await on_words.recent("ann")
    assert "twice" in kept.narrative
    assert "sk-" not in str(kept)


async def test_an_operator_can_let_secrets_in(open_words, run_of):
    memory = await open_words(secrets="keep")
    await memory.store([run_of("run", f"The card was {CARD}.")], "ann")
    await memory.close()


class Replies:
    name = "replies"

    def __init__(self, *replies):
        self.replies = [*replies]

    async def chat(self, request):
        return Reply(content=self.replies.pop(0))


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"title": "T", "narrative": "n" * 100_001, "facts": []}),
        json.dumps({"title": "T", "narrative": LONE, "facts": []}),
        json.dumps({"title": LONE, "narrative": "fine", "facts": []}),
        json.dumps({"title": "T", "narrative": "fine", "facts": [LONE]}),
        json.dumps({"title": "T", "narrative": "\u200b", "facts": []}),
    ],
)
async def test_a_summary_that_cannot_be_kept_costs_no_run(open_words, reply):
    memory = await open_words(chat=Replies(reply, reply))
    stored = await memory.compress_and_store(task="Survey caching", output="Caching helps. It is cheap.", owner="ann")
    assert (stored.outcome, stored.by, stored.observation.narrative) == (
        "stored",
        "rules",
        "Caching helps. It is cheap.",
    )
    await memory.close()


@pytest.mark.parametrize("output", [LONE, "word " * 100_000, "- " + "b" * 50_000, "\0\0 nothing", "x" * 300_000])
async def test_no_output_is_lost_for_its_form(on_words, output):
    assert (await on_words.compress_and_store(task="t", output=output, owner="ann")).outcome == "stored"


async def test_a_planner_is_told_a_bounded_text(open_words, run_of):
    memory = await open_words(max_context_characters=500)
    facts = ["a fact of many words " * 20] * 10
    await memory.store([run_of(f"r{n}", f"Covered caching {n}.", facts=facts) for n in range(3)], "ann")
    context = await memory.get_context("caching", "ann")
    assert len(context) <= 500
    assert context.startswith("Prior work on related topics:\n[r")
    assert context.endswith("(more is known; it was left out for its length)")
    await memory.close()
