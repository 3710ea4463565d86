import pytest

from memstory.contract.target import Item, Ref
from memstory.targets.receipts import stored, unknown, updated

TEA, MILK = Item(text="tea", key="drink", kind="fact"), Item(text="milk")


def test_each_item_has_its_own_id():
    tea, milk = stored([TEA, MILK], ["m1", "m2"]).items
    assert (tea.id, tea.text, tea.outcome, tea.kind, tea.key) == ("m1", "tea", "stored", "fact", "drink")
    assert (milk.id, milk.text, milk.outcome, milk.kind, milk.key) == ("m2", "milk", "stored", None, None)


def test_an_id_too_few_is_no_receipt():
    with pytest.raises(ValueError, match="shorter"):
        stored([TEA, MILK], ["m1"])


def test_what_was_replaced_is_told_as_updated():
    (item,) = updated(TEA, "m1").items
    assert (item.id, item.text, item.outcome, item.kind, item.key) == ("m1", "tea", "updated", "fact", "drink")


@pytest.mark.parametrize(("ref", "name"), [(Ref(id="m7"), "'m7'"), (Ref(key="drink"), "'drink'")])
def test_the_refusal_of_an_update_names_what_is_not_there(ref, name):
    assert str(unknown(ref)) == f"update: nothing is remembered under {name}"
