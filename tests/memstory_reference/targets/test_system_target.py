"""What the targets of all systems do alike: they say what they do not know, and by its right name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, StoryError
from memstory.contract.target import Environment, Query, Scope
from memstory_reference.targets.layers import LayersFactory
from memstory_reference.targets.manager import ManagerFactory
from memstory_reference.targets.observations import ObservationsFactory
from memstory_reference.targets.pipeline import PipelineFactory
from memstory_reference.targets.topics import TopicsFactory
from memstory_reference.targets.turns import TurnsFactory

ANN = Scope(user="case.ann", session="s")
FACTORIES = [TopicsFactory, ObservationsFactory, PipelineFactory, LayersFactory, ManagerFactory]
ASKED = {
    "search.min_score": Query(text="query", min_score=0.1),
    "search.where": Query(text="query", where={"a": 1}),
    "search.budget": Query(text="query", token_budget=10),
}


@pytest.mark.parametrize("factory", [*FACTORIES, TurnsFactory], ids=lambda factory: factory.name)
def test_importing_a_target_imports_no_vendor(factory):
    code = (
        f"import sys; from {factory.__module__} import {factory.__name__}; {factory.__name__}().capabilities({{}});"
        "vendors = {'chromadb', 'onnxruntime', 'onnx', 'tokenizers', 'ollama', 'mcp'}; print(vendors & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.strip() == "set()"


@pytest.fixture(params=FACTORIES, ids=lambda factory: factory.name)
async def target(request, tmp_path):
    target = request.param().target()
    await target.open(Environment(workspace=str(tmp_path), owner="case.ann", vectors={"query": [1, 0]}), StoryClock())
    yield target
    await target.close()


async def test_what_a_search_cannot_do_is_reported_under_its_own_name(target):
    for capability, query in ASKED.items():
        if capability not in target.capabilities():
            with pytest.raises(NotSupported) as error:
                await target.search(query, ANN)
            assert error.value.capability == capability


async def test_a_wrong_word_is_the_storys_mistake(target):
    wrong = (
        (target.inspect("log", {"until": 1}, ANN), "inspect log: unknown argument 'until'; allowed: since"),
        (target.inspect("log", {"since": "x"}, ANN), "since is 'x'"),
        (target.inspect("log", {"since": True}, ANN), "since is True"),
        (target.inspect("status", {"of": "x"}, ANN), "status: unknown argument 'of'; allowed: none"),
        (target.search(Query(text="query", options={"x": 1}), ANN), "search: unknown argument 'x'"),
    )
    for call, said in wrong:
        with pytest.raises(StoryError, match=said):
            await call


async def test_an_unknown_job_or_look_is_not_supported(target):
    for call in (target.run("dream", {}, ANN), target.inspect("dream", {}, ANN)):
        with pytest.raises(NotSupported, match="dream"):
            await call


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.name)
async def test_an_unknown_option_is_the_storys_mistake_with_the_nearest(factory, tmp_path):
    env = Environment(workspace=str(tmp_path), owner="case.ann", options={"chatt": "offline"})
    with pytest.raises(StoryError, match=r"unknown option 'chatt'\. Did you mean 'chat'"):
        await factory().target().open(env, StoryClock())
    env = Environment(workspace=str(tmp_path), owner="case.ann", options={"chat": 5})
    with pytest.raises(StoryError, match="chat is 5"):
        await factory().target().open(env, StoryClock())


async def test_an_argument_that_a_job_needs_is_named(tmp_path):
    target = LayersFactory().target()
    await target.open(
        Environment(workspace=str(tmp_path), owner="case.ann", options={"mode": "incognito"}), StoryClock()
    )
    with pytest.raises(StoryError, match="archive: the argument 'id' is missing"):
        await target.run("archive", {}, ANN)
    await target.close()
