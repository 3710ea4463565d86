"""Memories whose language model decides what is kept, with a model that the story scripts: what each of them does."""

from pathlib import Path

import pytest

from memstory import load_stories, play
from memstory.errors import NotSupported, SetupError, StoryError
from memstory.proxy.answering import Forwarding, Replaying, Scripted
from memstory.proxy.cassette import Recorder, read_calls
from memstory.proxy.server import Proxy
from memstory.results.secrecy.secret_values import Secrets
from memstory.target import Item, Query, Ref, Scope
from memstory.targets.embedders import Embedders
from memstory.targets.extracting.agno_memories import AgnoFactory
from memstory.targets.extracting.langmem import LangmemFactory
from memstory.targets.extracting.llamaindex_facts import LlamaindexFactsFactory

STORIES = {one.id: one for one in load_stories(Path(__file__).parents[2] / "stories/inferred/inferred.yaml")}
ANN = Scope(user="ann", session="one")
# LangMem's own dependency imports what LangGraph has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:Importing Send")


class OfMemories:
    """What each of them must show; `failing` are the stories that it fails, and `calls` the model's calls of an add."""

    failing: tuple[str, ...]
    calls: int
    learnt: tuple[dict, ...]

    @pytest.mark.parametrize("name", STORIES)
    async def test_stories_script_the_model_inside(self, name, letters):
        result = await play(STORIES[name], self.factory(letters))
        assert result.outcome == ("failed" if name in self.failing else "passed"), result.reason

    async def test_an_add_costs_the_calls_that_are_known(self, opened, letters):
        async with opened(self.factory(letters), model_rules=self.learnt) as target:
            receipt = await target.add([Item(text="I like green tea.")], ANN)
            (hit,) = await target.list(ANN)
            assert [(one.id, one.text, one.outcome) for one in receipt.items] == [(hit.id, "Ana likes tea", "stored")]
            assert (await target.inspect("model", {}, ANN))["calls"] == self.calls
            assert (await target.get(Ref(id=hit.id), ANN)).text == "Ana likes tea"
            assert (await target.about())["infer"] == "scripted"

    async def test_forgetting_a_user_leaves_the_others(self, opened, letters):
        bob = Scope(user="bob.b")
        async with opened(self.factory(letters), model_rules=self.learnt) as target:
            await target.add([Item(text="I like green tea.")], ANN)
            await target.add([Item(text="So do I.")], bob)
            assert await target.delete(Ref(), ANN)
            assert not await target.delete(Ref(id="unknown"), bob)
            assert [hit.text for hit in await target.search(Query(text="tea"), bob)] == ["Ana likes tea"]
            assert await target.list(ANN) == []

    async def test_without_a_model_nothing_can_be_added_and_it_is_said_what_to_type(self, opened, letters):
        async with opened(self.factory(letters)) as target:
            with pytest.raises(NotSupported, match="--target-option llm=openai:MODEL"):
                await target.add([Item(text="tea")], ANN)

    async def test_another_protocol_is_a_setup_error(self, opened, letters):
        with pytest.raises(SetupError, match="give openai:MODEL"):
            async with opened(self.factory(letters), options={"llm": "ollama:x"}):
                pass

    async def test_what_no_rule_answers_is_the_storys_fault(self, opened, letters):
        rules = [{"when": {"contains": "coffee"}, "reply": "no"}]
        async with opened(self.factory(letters), model_rules=rules) as target:
            with pytest.raises(StoryError, match="no rule under `model:` fits"):
                await target.add([Item(text="I like tea.")], ANN)


class TestLangmem(OfMemories):
    vendor = "langmem"
    failing, calls = ("INF6", "INF7"), 1
    learnt = ({"reply": {"tool_calls": [{"name": "Memory", "args": {"content": "Ana likes tea"}}]}},)

    def factory(self, letters):
        return LangmemFactory(Embedders({"minilm": letters}))


class TestLlamaindexFacts(OfMemories):
    vendor = "llama_index"
    failing, calls = ("INF4", "INF6"), 1
    learnt = ({"reply": "<facts><fact>Ana likes tea</fact></facts>"},)

    def factory(self, letters):
        return LlamaindexFactsFactory()


class TestAgno(OfMemories):
    vendor = "agno"
    failing, calls = ("INF6", "INF7"), 2
    learnt = (
        {"when": {"tool_result_contains": "added"}, "reply": "Done."},
        {"reply": {"tool_calls": [{"name": "add_memory", "args": {"memory": "Ana likes tea"}}]}},
    )

    def factory(self, letters):
        return AgnoFactory()


@pytest.mark.parametrize("memory", [TestLangmem(), TestLlamaindexFacts(), TestAgno()], ids=lambda one: one.vendor)
async def test_a_recorded_run_is_replayed_without_the_server(memory, opened, letters, tmp_path):
    async def learnt(url):
        async with opened(memory.factory(letters), options={"llm": "openai:m", "llm_url": url}) as target:
            await target.delete(Ref(), ANN)
            receipt = await target.add([Item(text="I like green tea.")], ANN)
            return [(one.text, one.outcome) for one in receipt.items]

    file = tmp_path / "run.jsonl"
    with (
        Proxy(Scripted(memory.learnt)) as model,
        Proxy(Forwarding(model.url, None, Recorder(file, Secrets()))) as proxy,
    ):
        recorded = await learnt(proxy.url)
    with Proxy(Replaying(read_calls(file))) as replaying:
        again = await learnt(replaying.url)
    assert recorded == again == [("Ana likes tea", "stored")]
    assert (replaying.failures, len(replaying.calls)) == ([], memory.calls)
    assert {call.how for call in replaying.calls} == {"replayed"}
