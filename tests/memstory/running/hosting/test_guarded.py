"""What a target may answer, and what becomes of everything else that it may do."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Hit, Query, Receipt, ReceiptItem, Request, Scope, Target, ToolCall, Turn
from memstory.running.hosting.guarded import GuardedTarget, answer_check, contain_exits

ANN = Scope(user="ann")
HIT = Hit(id="1", text="tea", score=0.5, metadata={"a": [1]}, explain={"by": "words"})


class Answering(Target):
    def __init__(self, answer):
        self.answer = answer

    async def search(self, query, scope):
        return self.answer() if callable(self.answer) else self.answer


async def search(answer):
    return await GuardedTarget(Answering(answer), frozenset()).perform(Request.of(Target.search, Query(text="q"), ANN))


@pytest.mark.parametrize("answer", [[], (), [HIT], (HIT, HIT), [Hit(id=None, text="", score=3)]])
async def test_what_fits_passes_as_it_is(answer):
    assert await search(answer) is answer


@pytest.mark.parametrize(
    ("able", "kind", "said"),
    [
        ({"search"}, TargetError, "the target declares 'search', and says that it does not support it: no index"),
        ({"list"}, NotSupported, "no index"),
    ],
)
async def test_a_target_that_declines_what_it_declares_is_broken(able, kind, said):
    def decline():
        raise NotSupported("search", "no index")

    with pytest.raises(kind) as raised:
        await GuardedTarget(Answering(decline), frozenset(able)).perform(
            Request.of(Target.search, Query(text="q"), ANN)
        )
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "it is None, not a list"),
        ("tea", "it is a str ('tea'), not a list"),
        ({"hits": []}, "it is a dict ({'hits': []}), not a list"),
        ([None], "it[0] is None, not a Hit"),
        ([HIT, {"id": "1", "text": "tea"}], "it[1] is a dict ({'id': '1', 'text': 'tea'}), not a Hit"),
        ([Hit(id="1", text=None)], "it[0].text is None, not a text"),
        ([Hit(id=7, text="tea")], "it[0].id is a int (7), not a text"),
        ([Hit(id="1", text="tea", score="high")], "it[0].score is a str ('high'), not a number"),
        ([Hit(id="1", text="tea", score=True)], "it[0].score is True, not a number"),
        ([Hit(id="1", text="tea", metadata=None)], "it[0].metadata is None, not a mapping"),
        ([Hit(id="1", text="tea", metadata={1: "a"})], "it[0].metadata has the key a int (1), not a text"),
        ([Hit(id="1", text=b"\xff")], "it[0].text is a bytes (b'\\xff'), not a text"),
    ],
)
async def test_what_does_not_fit_is_told_with_its_place(answer, said):
    with pytest.raises(TargetError) as raised:
        await search(answer)
    assert str(raised.value) == f"'search' of the target returned a malformed answer: {said}"


@pytest.mark.parametrize(
    ("op", "good", "bad"),
    [
        ("add", Receipt(items=[ReceiptItem(id="1", text="tea")]), Receipt(items=None)),
        ("get", None, [HIT]),
        ("delete", False, None),
        ("feedback", True, 1),
        ("context", "", None),
        ("say", Turn(answer="a", tool_calls=[ToolCall(name="t", args={})]), Turn(answer="a", tool_calls=[{}])),
        ("about", {"store": "v1"}, {"store": 1}),
        ("run", {"anything": [1, None]}, None),
        ("settle", None, None),
    ],
)
def test_every_operation_has_its_own_shape(op, good, bad):
    check = answer_check(op)
    assert check(good) == ""
    assert bool(check(bad)) is (op not in ("run", "settle"))


ODD = st.sampled_from([None, "tea", 1, 0.5, True, b"x", (), {}, {"a": 1}, {1: "a"}, {"a": {1: 2}}])


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(("id", "text", "score", "metadata", "explain"), ODD)), max_size=3))
def test_many_hits_are_judged_as_each_alone_is(rows):
    hits = [Hit(**row) for row in rows]
    alone = [answer_check("get")(hit) for hit in hits]
    wrong = [f"[{place}]{said}" for place, said in enumerate(alone) if said]
    assert answer_check("search")(hits) == (wrong[0] if wrong else "")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.binary(), st.lists, max_leaves=8))
def test_no_value_breaks_the_check(value):
    assert isinstance(answer_check("search")(value), str)


async def test_a_value_that_cannot_even_be_shown_is_told():
    class Odd:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(TargetError, match=r"it\[0\] is a Odd \(its repr raises RuntimeError\), not a Hit"):
        await search([Odd()])


class Panic(BaseException):
    """As the bindings of some compiled libraries raise it."""


def raising(error):
    def answer():
        raise error

    return answer


@pytest.mark.parametrize(
    "error", [Panic("out of range"), SystemExit(3), GeneratorExit("x"), asyncio.CancelledError(), KeyboardInterrupt()]
)
async def test_what_is_no_exception_becomes_an_error_of_the_target(error):
    with pytest.raises(TargetError, match=f"the target raised {type(error).__name__}"):
        await search(raising(error))


@pytest.mark.parametrize("error", [Refused("no"), NotSupported("search"), ValueError("x")])
async def test_errors_with_a_meaning_of_their_own_stay_what_they_are(error):
    with pytest.raises(type(error)) as raised:
        await search(raising(error))
    assert raised.value is error


async def test_a_time_limit_is_no_error_of_the_target():
    async def limited():
        with contain_exits():
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await limited()


async def test_an_operation_that_is_no_coroutine_says_what_to_do():
    class Plain(Target):
        def search(self, query, scope):  # what somebody who forgot `async` writes
            return []

    with pytest.raises(TargetError, match="'search' of the target is not a coroutine: define it with 'async def'"):
        await GuardedTarget(Plain(), frozenset()).perform(Request.of(Target.search, Query(text="q"), ANN))


async def test_an_operation_with_other_parameters_says_how_it_is_called():
    class Short(Target):
        async def list(self, scope):  # what somebody writes who has seen `add` and `search` only
            return []

    said = r"Short\.list\(\) takes .* Define it as 'async def list\(self, scope, kinds=\(\), limit=None\)'"
    with pytest.raises(TargetError, match=said):
        await GuardedTarget(Short(), frozenset()).perform(Request.of(Target.list, ANN))


async def test_a_type_error_of_an_operation_itself_stays_what_it_is():
    class Wrong(Target):
        async def list(self, scope, kinds=(), limit=None):
            return range(limit)

    with pytest.raises(TypeError, match="NoneType"):
        await GuardedTarget(Wrong(), frozenset()).perform(Request.of(Target.list, ANN))
