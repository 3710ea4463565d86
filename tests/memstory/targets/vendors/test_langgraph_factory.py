"""A store of LangGraph's that a project makes itself."""

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.vendors.langgraph import LanggraphFactory

ANN = Scope(user="ann.dot/slash", session="one")
STORES = """
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph.store.memory import InMemoryStore

closed = []


def letters(texts):
    return [[text.lower().count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


shared = InMemoryStore(index={"dims": 26, "embed": letters, "fields": ["text"]})


def plain(folder):
    return shared


async def awaited(folder):
    Path(folder, "here").write_text("x")
    return shared


@asynccontextmanager
async def context(folder):
    yield shared
    closed.append(folder)


def wrong(folder):
    return {}
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch, request):
    name = f"their_stores_{request.node.name.partition('[')[0]}_{abs(hash(request.node.name))}"
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / f"{name}.py").write_text(STORES, "utf-8")
    monkeypatch.syspath_prepend(folder)
    return name


@pytest.mark.parametrize("function", ["plain", "awaited", "context"])
async def test_the_stories_run_on_the_store_that_a_function_makes(module, function, opened, conditions_hold):
    options = {"factory": f"{module}:{function}"}
    async with opened(LanggraphFactory(), options=options) as target:
        await conditions_hold(target)
        receipt = await target.add([Item(text="zzz")], ANN)
        assert (await target.search(Query(text="zz"), ANN))[0].text == "zzz"
        await target.update(Ref(id=receipt.items[0].id), Item(text="qqq"), ANN)
        assert (await target.search(Query(text="qq"), ANN))[0].text == "qqq"
        about = await target.about()
    assert about["store"].endswith(f"InMemoryStore of {module}:{function}")
    assert about["namespace"].endswith("of the case's own")


async def test_a_context_is_left_and_a_case_knows_nothing_of_another(module, opened, tmp_path):
    options = {"factory": f"{module}:context"}
    first, other = str(tmp_path), tmp_path / "other"
    other.mkdir()
    async with opened(LanggraphFactory(), options=options) as target:
        await target.add([Item(text="tea")], ANN)
    async with opened(LanggraphFactory(), options=options, workspace=str(other)) as target:
        assert await target.list(ANN) == []
    async with opened(LanggraphFactory(), options=options, workspace=first) as target:
        assert [hit.text for hit in await target.list(ANN)] == ["tea"]
    assert __import__(module).closed == [f"{first}/store", f"{other}/store", f"{first}/store"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_module_of_theirs:make", r"there is no module 'no_module_of_theirs' here\. Type the command in its folder"),
        ("just_a_name", "allowed: module:function"),
    ],
)
def test_a_function_that_cannot_be_is_refused_before_anything_runs(spec, said):
    with pytest.raises(SetupError, match=said):
        LanggraphFactory().capabilities({"factory": spec})


@pytest.mark.parametrize(
    ("function", "said"), [("wrong", "returned a dict; allowed: a BaseStore"), ("gone", "has no function 'gone'")]
)
async def test_what_makes_no_store_is_named(module, function, said, opened):
    with pytest.raises(SetupError, match=said):
        async with opened(LanggraphFactory(), options={"factory": f"{module}:{function}"}):
            pass


def test_only_a_store_that_keeps_is_asked_to_keep(module):
    options = {"factory": f"{module}:plain"}
    able = LanggraphFactory().capabilities(options)
    assert LanggraphFactory().capabilities({**options, "persistent": True}) - able == {"restart", "crash", "persistent"}
    assert "embedder.fixed" not in able
