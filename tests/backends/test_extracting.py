"""Memories whose language model decides what is kept, with a model that the story scripts: what each of them does."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstory import load_stories, play
from memstory.contract.errors import NotSupported, SetupError, StoryError
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.models.answering import Forwarder, Replayer, RuleAnswerer
from memstory.models.proxy import Proxy
from memstory.models.proxy_recording import Recorder, read_calls
from memstory.results.secret_values import Secrets
from memstory.targets.embedders import Embedders
from memstory.targets.vendors.agno import AgnoFactory
from memstory.targets.vendors.langmem import LangmemFactory
from memstory.targets.vendors.llamaindex import LlamaindexFactsFactory
from memstory.targets.vendors.mem0 import Mem0Factory

FILE = Path(__file__).parents[2] / "stories/inferred/inferred.yaml"
STORIES = {one.id: one for one in load_stories(FILE) if "langmem" in one.targets}
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

    async def test_what_a_model_said_is_told_where_nothing_was_kept(self, opened, letters):
        async with opened(self.factory(letters), model_rules=[{"reply": "Sure! I will remember it."}]) as target:
            (item,) = (await target.add([Item(text="I like tea.")], ANN)).items
            assert (item.outcome, item.reason) == ("dropped", "its model answered: Sure! I will remember it.")
            assert target.model_use.calls > 0

    async def test_what_no_rule_answers_is_the_storys_fault(self, opened, letters):
        rules = [{"when": {"contains": "coffee"}, "reply": "no"}]
        async with opened(self.factory(letters), model_rules=rules) as target:
            with pytest.raises(StoryError, match="no rule under `model:` fits"):
                await target.add([Item(text="I like tea.")], ANN)


class TestLangmem(OfMemories):
    vendor = "langmem"
    moved = ("Ana lives in Faro",)
    failing, calls = ("INF6", "INF7"), 1
    learnt = ({"reply": {"tool_calls": [{"name": "Memory", "args": {"content": "Ana likes tea"}}]}},)

    def factory(self, letters):
        return LangmemFactory(Embedders({"minilm": letters}))


class TestLlamaindexFacts(OfMemories):
    vendor = "llama_index"
    moved = ("Ana lives in Porto", "Ana lives in Faro")
    failing, calls = ("INF4", "INF6"), 1
    learnt = ({"reply": "<facts><fact>Ana likes tea</fact></facts>"},)

    def factory(self, letters):
        return LlamaindexFactsFactory()


class TestAgno(OfMemories):
    vendor = "agno"
    moved = ("Ana lives in Faro",)
    failing, calls = ("INF6", "INF7"), 2
    learnt = (
        {"when": {"tool_result_contains": "added"}, "reply": "Done."},
        {"reply": {"tool_calls": [{"name": "add_memory", "args": {"memory": "Ana likes tea"}}]}},
    )

    def factory(self, letters):
        return AgnoFactory()


class Mem0:
    vendor = "mem0"
    calls = 1
    moved = ("Ana lives in Porto", "Ana lives in Faro")
    learnt = ({"reply": '{"memory": [{"id": "0", "text": "Ana likes tea"}]}'},)

    def factory(self, letters):
        return Mem0Factory(Embedders({"minilm": letters}))


EVERY = pytest.mark.parametrize(
    "memory", [TestLangmem(), TestLlamaindexFacts(), TestAgno(), Mem0()], ids=lambda one: one.vendor
)


@pytest.fixture
def asking(opened, letters, openai_endpoint):
    """Opens a memory whose model is at the endpoint."""
    openai_endpoint.model, openai_endpoint.key = "m", None
    options = {"llm": "openai:m", "llm_url": openai_endpoint.url}
    return lambda memory: opened(memory.factory(letters), options=options)


def wrong_key(server):
    server.key = "sk-other"


def unknown_model(server):
    server.model = "another"


def no_tools(server):
    server.failures = [(400, "this model does not support tools")] * 9


def storm(server):
    server.failures = [(429, "Rate limit reached")] * 99


@EVERY
@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (wrong_key, "answered 401 to the memory: Incorrect API key provided.* Put the right key into OPENAI_API_KEY"),
        (unknown_model, "answered 404 to the memory: The model `m` does not exist.* See http://.*/models"),
        (no_tools, "answered 400 .*This memory needs a model that calls tools: --target-option llm=openai:MODEL"),
        (storm, "answered 429 to the memory: Rate limit reached.* Wait, run with fewer workers"),
    ],
)
async def test_no_answer_of_a_model_is_one_sentence(memory, breaking, said, asking, openai_endpoint):
    breaking(openai_endpoint)
    async with asking(memory) as target:
        with pytest.raises(SetupError, match=said) as caught:
            await target.add([Item(text="I like tea.")], ANN)
        assert "\n" not in str(caught.value)
        assert await target.list(ANN) == []
        assert target.model_use.failed == target.model_use.calls > 0


@EVERY
async def test_a_refusal_and_missing_usage_are_told(memory, asking, openai_endpoint):
    openai_endpoint.has_usage = False
    openai_endpoint.deltas = [{"content": "I cannot help with that."}]
    async with asking(memory) as target:
        (item,) = (await target.add([Item(text="I like tea.")], ANN)).items
        assert (item.outcome, item.reason) == ("dropped", "its model answered: I cannot help with that.")
        assert target.model_use.failed == 0
        assert target.model_use.prompt_tokens is None


class Quoting(RuleAnswerer):
    """A model that stores where Ana lives, and then changes that by the id that its prompt shows."""

    KNOWN = re.compile(r"(?:instance id=|ID: )([0-9a-f-]{32,36})")

    async def answer(self, path, body, key):
        said = json.dumps(body["messages"])
        city = "Faro" if "Faro" in said else "Porto"
        text, known = f"Ana lives in {city}", self.KNOWN.search(said)
        ids = {"json_doc_id": known[1], "planned_edits": "move"} if known else {}
        patch = {"patches": [{"op": "replace", "path": "/content", "value": text}]}
        if "Memory Extractor" in said:
            rule = {"reply": json.dumps({"memory": [{"id": "0", "text": text}]})}
        elif "fact extraction" in said:
            rule = {"reply": f"<facts><fact>{text}</fact></facts>"}
        elif "memory subroutine" in said:
            name, args = ("PatchDoc", {**ids, **patch}) if known else ("Memory", {"content": text})
            rule = {"reply": {"tool_calls": [{"name": name, "args": args}]}}
        elif body["messages"][-1]["role"] == "tool":
            rule = {"reply": "Done."}
        else:
            name, args = ("update_memory", {"memory_id": known[1]}) if known else ("add_memory", {})
            rule = {"reply": {"tool_calls": [{"name": name, "args": {**args, "memory": text}}]}}
        self._rules = [rule]
        return await super().answer(path, body, key)


class Later(Replayer):
    """A replay on another day: the dates of today in a request are those of 2031."""

    async def answer(self, path, body, key):
        moved = json.dumps(body).replace(datetime.now(UTC).date().isoformat(), "2031-05-06")
        return await super().answer(path, json.loads(moved), key)


@EVERY
async def test_a_recorded_session_is_replayed_with_new_ids_and_dates(memory, opened, letters, tmp_path):
    async def session(folder, url):
        options = {"llm": "openai:m", "llm_url": url}
        async with opened(memory.factory(letters), folder=folder, options=options) as target:
            for text in ("I live in Porto.", "I live in Faro now."):
                await target.add([Item(text=text)], ANN)
            kept = await target.list(ANN)
            return sorted(hit.text for hit in kept), {hit.id for hit in kept}

    file = tmp_path / "run.jsonl"
    with Proxy(Quoting([])) as model, Proxy(Forwarder(model.url, None, Recorder(file, Secrets()))) as proxy:
        recorded, ids = await session("recorded", proxy.url)
    with Proxy(Later(read_calls(file))) as replaying:
        again, other_ids = await session("again", replaying.url)
    assert again == recorded == sorted(memory.moved)
    assert [call.how for call in replaying.calls] == ["replayed"] * 2 * memory.calls
    # LlamaIndex's facts have no ids; the adapter makes them of the text.
    assert ids.isdisjoint(other_ids) or memory.vendor == "llama_index"


@EVERY
async def test_a_recorded_run_is_replayed_without_the_server(memory, opened, letters, tmp_path):
    async def learnt(url):
        options = {"llm": "openai:m", "llm_url": url}
        async with opened(memory.factory(letters), folder=url[-8:-3], options=options) as target:
            receipt = await target.add([Item(text="I like green tea.")], ANN)
            return [(one.text, one.outcome) for one in receipt.items]

    file = tmp_path / "run.jsonl"
    with (
        Proxy(RuleAnswerer(memory.learnt)) as model,
        Proxy(Forwarder(model.url, None, Recorder(file, Secrets()))) as proxy,
    ):
        recorded = await learnt(proxy.url)
    with Proxy(Replayer(read_calls(file))) as replaying:
        again = await learnt(replaying.url)
    assert recorded == again == [("Ana likes tea", "stored")]
    assert (replaying.failures, len(replaying.calls)) == ([], memory.calls)
    assert {call.how for call in replaying.calls} == {"replayed"}
