"""Operations as data: each can cross to another process."""

import pytest

from memstory.contract.codec import decode, encode
from memstory.contract.target import OPERATIONS, Item, Query, Ref, Request, Scope, Target, hints

ANN = Scope(user="ann", session="monday")
REQUESTS = [
    Request.of(Target.add, (Item(text="Tea.", metadata={"n": [1, None]}),), ANN),
    Request.of(Target.get, Ref(id="m1"), ANN),
    Request.of(Target.search, Query(text="tea", top_k=3), ANN),
    Request.of(Target.list, ANN, ("note",), 5),
    Request.of(Target.delete_about, ("tea",), ANN, durable=True),
    Request.of(Target.tool, "recall", {"topic": "tea"}, ANN, "critic"),
    Request.of(Target.about),
]


def test_every_operation_has_types_by_which_it_crosses():
    assert {"add", "search", "say", "delete_about", "fault_counts"} <= OPERATIONS
    assert all("return" in hints(op) for op in OPERATIONS)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one.op)
def test_a_request_is_the_same_after_it_crossed(request_):
    sent = encode(request_.args)
    assert {name: decode(hints(request_.op)[name], value) for name, value in sent.items()} == request_.args


def test_a_request_has_the_arguments_by_the_names_of_the_operation():
    assert Request.of(Target.update, Ref(id="m1"), Item(text="Mate."), scope=ANN) == Request(
        "update", {"ref": Ref(id="m1"), "item": Item(text="Mate."), "scope": ANN}
    )


async def test_a_request_that_is_performed_gives_each_argument_by_its_place():
    class Renaming(Target):
        async def list(self, whose, sorts, most):
            return (whose, sorts, most)

        async def delete_about(self, what, whose, *, durable):
            return (what, whose, durable)

    assert await Renaming().perform(Request.of(Target.list, ANN, limit=2)) == (ANN, (), 2)
    assert await Renaming().perform(Request.of(Target.delete_about, ["tea"], ANN)) == (["tea"], ANN, False)
