"""What the model of a memory expects after an answer, and what it lets pass."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.target import Hit, Item, Receipt, ReceiptItem
from memstory.exploring.model import Model, equal_as_json, visible_words
from memstory.exploring.programs import Action, Memo

ABLE = frozenset({"add.verbatim", "add.exact", "add.metadata", "search", "search.where", "search.scores", "scope.user",
                  "list", "delete", "delete.reports_missing", "update", "scope.session_all"})  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEA, BREAD = Item(text="Note 1: tea", metadata={"cups": 1}), Item(text="Note 2: bread")


@pytest.fixture
def model():
    """A model that has seen ana add tea (m1) and bread (m2)."""
    model = Model(able=ABLE)
    adding = Action(op="add", memos=(Memo(name="m1", item=TEA), Memo(name="m2", item=BREAD)))
    receipt = Receipt(items=[ReceiptItem(id="1", text=TEA.text), ReceiptItem(id="2", text=BREAD.text)])
    assert model.judge(adding, receipt, NOW) is None
    return model


def hit(id_, item, **more):
    return Hit(id=id_, text=item.text, metadata=item.metadata, **more)


BOTH = [hit("1", TEA), hit("2", BREAD)]


@pytest.mark.parametrize(
    ("operation", "answer", "promise"),
    [
        (Action(op="list"), BOTH, None),
        (Action(op="list"), [hit(None, TEA), hit(None, BREAD)], None),
        (Action(op="list"), BOTH[:1], "kept"),
        (Action(op="list"), [*BOTH, BOTH[0]], "once"),
        (Action(op="list"), [*BOTH, hit("3", Item(text="cheese"))], "invented"),
        (Action(op="list"), [Hit(id="1", text="Note 1: t", metadata=TEA.metadata), BOTH[1]], "text"),
        (Action(op="list"), [Hit(id="1", text=TEA.text, metadata={"cups": True}), BOTH[1]], "metadata"),
        (Action(op="list"), [Hit(id="1", text=TEA.text, metadata={"cups": 1.0, "more": 2}), BOTH[1]], None),
        (Action(op="list", limit=1), BOTH, "limit"),
        (Action(op="list", limit=1), [], "filled"),
        (Action(op="list", user="ben"), BOTH[:1], "apart"),
        (Action(op="list", user="ben"), [], None),
        (Action(op="search", text=TEA.text, limit=5), BOTH[1:], "searchable"),
        (Action(op="search", text=TEA.text, limit=1), BOTH[:1], None),
        (Action(op="search", text="note", limit=5, where=(("cups", 1),)), BOTH, "conditions"),
        (Action(op="search", text="note", limit=5, where=(("cups", 1),)), BOTH[:1], None),
        (Action(op="search", text="note", limit=5), [hit("1", TEA, score=0.1), hit("2", BREAD, score=1)], "falling"),
        (Action(op="search", text="note", limit=5), [hit("1", TEA, score=float("nan")), BOTH[1]], "falling"),
        (Action(op="get", memory="m1"), None, "kept"),
        (Action(op="get", memory="m1", user="ben"), BOTH[0], "apart"),
        (Action(op="delete", memory="m1"), False, "says_deleted"),
        (Action(op="delete", memory="m1", user="ben"), True, "says_deleted"),
        (Action(op="delete", memory="m1", user="ben"), False, None),
    ],
)  # fmt: skip
def test_an_answer_breaks_the_promise_that_is_named(model, operation, answer, promise):
    violation = model.judge(operation, answer, NOW)
    assert (violation and violation.promise) == promise


def test_what_is_deleted_must_stay_away_and_what_is_replaced_too(model):
    assert model.judge(Action(op="delete", memory="m2"), answer=True, now=NOW) is None
    assert model.judge(Action(op="list"), BOTH, NOW).promise == "deleted"
    new = Memo(name="m3", item=Item(text="Note 3: coffee"))
    answer = Receipt(items=[ReceiptItem(id="1", text="Note 3: coffee", outcome="updated")])
    assert model.judge(Action(op="update", memory="m1", memos=(new,)), answer, NOW) is None
    assert model.judge(Action(op="list"), BOTH[:1], NOW).promise == "current"
    assert model.judge(Action(op="list"), [hit("1", Item(text="Note 3: coffee", metadata={"cups": 1}))], NOW) is None


def test_another_users_deletion_and_update_must_change_nothing(model):
    assert model.judge(Action(op="delete", memory="m1", user="ben"), answer=False, now=NOW) is None
    assert model.judge(Action(op="list"), BOTH[1:], NOW).promise == "untouched"


def added(model, name, item, receipt, **more):
    adding = Action(op="add", memos=(Memo(name=name, item=item),), **more)
    return model.judge(adding, Receipt(items=[receipt]), NOW)


def test_what_was_deleted_for_good_must_stay_away_when_it_is_added_again(model):
    model.able |= {"delete.durable"}
    assert model.judge(Action(op="delete", memory="m2", durable=True), answer=True, now=NOW) is None
    assert added(model, "m3", BREAD, ReceiptItem(id="3", text=BREAD.text)) is None
    assert model.judge(Action(op="list"), BOTH[:1], NOW) is None
    assert model.judge(Action(op="list"), [BOTH[0], hit("3", BREAD)], NOW).promise == "forgotten"


def test_what_may_never_have_been_stored_is_not_forgotten_for_good(model):
    model.able |= {"delete.durable"}
    milk = Item(text="Note 3: milk", key="milk")
    model.refuse(Action(op="add", memos=(Memo(name="m3", item=milk), Memo(name="m4", item=BREAD))))
    model.judge(Action(op="delete", memory="m3", by="key", durable=True), answer=False, now=NOW)
    assert added(model, "m5", milk, ReceiptItem(id="5", text=milk.text)) is None
    assert model.judge(Action(op="list"), [*BOTH, hit("5", milk)], NOW) is None


def test_a_text_for_a_prompt_has_nothing_of_others_and_nothing_deleted(model):
    assert model.judge(Action(op="context", text="tea"), "You know: Note 1: tea", NOW) is None
    assert model.judge(Action(op="context", user="ben", text="tea"), "Note 1: tea", NOW).promise == "apart"
    model.judge(Action(op="delete", memory="m1"), answer=True, now=NOW)
    assert model.judge(Action(op="context", text="tea"), "Note 1: tea", NOW).promise == "deleted"


def test_a_deletion_by_words_says_how_many_it_took(model):
    by_words = Action(op="delete", memory="m1", more="m2", by="about")
    assert model.judge(by_words, answer=2, now=NOW) is None
    assert model.judge(by_words, answer=1, now=NOW).promise == "says_deleted"


def test_an_id_is_given_to_one_memory(model):
    model.able |= {"get.id"}
    milk = Item(text="Note 3: milk")
    assert added(model, "m3", milk, ReceiptItem(id="1", text=milk.text)).promise == "ids"
    assert added(model, "m4", milk, ReceiptItem(id="4", text=milk.text)) is None


def test_a_key_that_is_kept_in_another_form_may_leave_its_id_to_what_replaces_it(model):
    model.able |= {"get.id", "add.key"}
    tea, milk = Item(text="Note 3: tea", key="drink"), Item(text="Note 4: milk", key=" drink")
    assert added(model, "m3", tea, ReceiptItem(id="drink", text=tea.text, key="drink")) is None
    assert added(model, "m4", milk, ReceiptItem(id="drink", text=milk.text, key="drink")) is None
    other = Item(text="Note 5: juice", key="drinks")
    assert added(model, "m5", other, ReceiptItem(id="drink", text=other.text, key="drinks")).promise == "ids"


def test_an_id_means_a_users_own_memory_where_two_users_have_it(model):
    tea = Item(text="Note 3: green tea", key="1")
    assert added(model, "m3", tea, ReceiptItem(id="1", text=tea.text, key="1"), user="ben") is None
    get, delete = (Action(op=op, memory="m1", user="ben") for op in ("get", "delete"))
    assert model.judge(get, hit("1", TEA), NOW).promise == "apart"
    assert model.judge(get, hit("1", BREAD, key="1"), NOW).promise == "text"
    assert model.judge(get, hit("1", tea, key="1"), NOW) is None
    assert model.judge(delete, answer=True, now=NOW) is None
    assert model.judge(delete, answer=True, now=NOW).promise == "says_deleted"
    assert model.judge(Action(op="list"), BOTH, NOW) is None


def test_a_hit_that_may_be_a_memory_of_which_nothing_is_known_is_not_called_deleted(model):
    model.able |= {"add.key"}
    ferry, bread = (Item(text="Note 3: the window seat", key=key) for key in ("ferry", "bread"))
    added(model, "m3", ferry, ReceiptItem(id="3", text=ferry.text, key="ferry"), session="tuesday")
    added(model, "m4", bread, ReceiptItem(id="4", text=bread.text, key="bread"), session="tuesday")
    again = (Memo(name="m5", item=Item(text="Note 5: milk")), Memo(name="m6", item=Item(text="Note 6", key="bread")))
    model.refuse(Action(op="add", session="monday", memos=again))
    milk = Item(text="Note 7: milk", key="ferry")
    added(model, "m7", milk, ReceiptItem(id="3", text=milk.text, key="ferry"), session="tuesday")
    listing = Action(op="list", session="monday")
    assert model.judge(listing, [hit("4", bread, key="bread")], NOW) is None
    tea = Item(text=bread.text, key="tea")
    added(model, "m8", tea, ReceiptItem(id="8", text=tea.text, key="tea"), session="monday")
    assert model.judge(listing, [hit("4", bread, key="bread"), hit("8", tea, key="tea")], NOW) is None


def test_a_plain_text_must_be_taken_and_an_odd_one_can_be_refused(model):
    plain = Memo(name="m3", item=Item(text="Note 3: milk"))
    odd = Memo(name="m4", item=Item(text="Note 4: milk", key="x" * 300), tags=frozenset({"key", "key:long"}))
    assert model.refuse(Action(op="add", memos=(plain,))).promise == "takes"
    assert model.refuse(Action(op="add", memos=(odd,))) is None


def test_others_that_are_as_near_may_take_the_place_of_a_text_where_vectors_decide(model):
    search = Action(op="search", text=TEA.text, limit=1)
    assert model.judge(search, [hit("2", BREAD, score=1.0)], NOW).promise == "searchable"
    model.able |= {"embedder.fixed"}
    assert model.judge(search, [hit("2", BREAD, score=1.0)], NOW) is None
    assert model.judge(search, [], NOW).promise == "searchable"


def test_after_forgetting_for_good_a_plain_text_can_be_refused(model):
    model.able |= {"delete.durable"}
    model.memory("m2").state = "unknown"
    model.judge(Action(op="delete", memory="m2", durable=True), answer=True, now=NOW)
    assert model.refuse(Action(op="add", memos=(Memo(name="m3", item=Item(text="Note 3: milk")),))) is None


def test_what_has_a_key_is_not_searched_for_where_keys_are_apart(model):
    item = Item(text="Note 3: milk", key="milk")
    added(model, "m3", item, ReceiptItem(id="3", text=item.text, key="milk"))
    search = Action(op="search", text=item.text, limit=5)
    assert model.judge(search, BOTH, NOW).promise == "searchable"
    model.able |= {"add.key.apart"}
    assert model.judge(search, BOTH, NOW) is None


def test_what_a_receipt_says_was_not_kept_is_not_expected(model):
    adding = Action(op="add", memos=(Memo(name="m3", item=Item(text="Note 3: noise")),))
    receipt = Receipt(items=[ReceiptItem(id=None, text="Note 3: noise", outcome="discarded")])
    assert model.judge(adding, receipt, NOW) is None
    assert model.judge(Action(op="list"), BOTH, NOW) is None


def test_a_receipt_with_too_few_items_is_named(model):
    adding = Action(op="add", memos=(Memo(name="m3", item=TEA), Memo(name="m4", item=BREAD)))
    assert model.judge(adding, Receipt(items=[ReceiptItem(id="3", text=TEA.text)]), NOW).promise == "receipt"


def test_a_promise_without_its_capability_is_not_asked_for():
    model = Model(able=ABLE - {"scope.user"})
    adding = Action(op="add", memos=(Memo(name="m1", item=TEA),))
    model.judge(adding, Receipt(items=[ReceiptItem(id="1", text=TEA.text)]), NOW)
    assert model.judge(Action(op="list", user="ben"), BOTH[:1], NOW) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_every_value_is_equal_to_itself_as_json(value):
    assert equal_as_json(value, value)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [(1, 1.0, True), (1e300, 10**300, False), (0, False, False), (1, True, False), ("1", 1, False), (None, "", False),
     ([1], (1,), True), ([1], [True], False), ({"a": 1}, {"a": 1, "b": 2}, False)],
)  # fmt: skip
def test_values_are_compared_as_json_does(one, other, equal):
    assert equal_as_json(one, other) is equal


def test_what_nobody_sees_of_a_text_does_not_count():
    assert visible_words("  the fer\u200bry \n leaves\ufeff ") == "the ferry leaves"
