"""The reference's chat models, as the shim of the harness sees them."""

from __future__ import annotations

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.models import ChatRequest, Message
from memstory.contract.target import ToolSchema
from memstory.models.loading import ollama, openai, record, replay
from memstory.targets.embedders import load_embedder
from memstory_reference.targets.offered import offline

NOTES = ToolSchema(
    name="save_memory",
    description="Remember something.",
    parameters={"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
)


async def test_the_stand_in_says_that_it_is_one_and_uses_the_tools():
    model = offline("")
    reply = await model.chat(
        ChatRequest([Message(role="user", content="Please remember that I am allergic to nuts.")], [NOTES])
    )
    assert "stand-in" in model.name
    assert [request.name for request in reply.tool_requests] == ["save_memory"]


@pytest.mark.parametrize(
    ("make", "more"), [(offline, "gemma3:4b"), (ollama, ""), (openai, ""), (record, "offline"), (replay, "")]
)
def test_a_name_that_makes_no_sense_is_refused_at_once(make, more):
    with pytest.raises(SetupError):
        make(more)


async def test_what_talks_for_a_backend_can_be_recorded_and_replayed(tmp_path):
    said = [Message(role="user", content="Please remember that I am allergic to nuts.")]
    first = await record(f"offline@{tmp_path / 'talk.json'}").chat(ChatRequest(said, [NOTES]))
    assert first.tool_requests
    assert await replay(str(tmp_path / "talk.json")).chat(ChatRequest(said, [NOTES])) == first


@pytest.mark.parametrize("kind", ["openai", "ollama"])
async def test_a_server_embeds_for_others_and_each_text_once(kind, request, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path))
    server = request.getfixturevalue(f"{kind}_{'endpoint' if kind == 'openai' else 'server'}")
    model = server.model if kind == "openai" else "nomic-embed-text"
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    embedder = load_embedder(f"{kind}:{model}", {"ollama_host": server.url})
    texts = ["tea", "a ship", "tea"]
    first, second, third = await embedder.embed(texts, "document")
    asked = len(server.requests)
    assert [*await embedder.embed(texts, "document")] == [first, second, third]
    await embedder.close()
    # Ollama is asked once which weights it has under the name.
    assert asked == len(server.requests) == {"openai": 1, "ollama": 2}[kind]
    assert first == third != second
    assert sum(number * number for number in first) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("openai:tiny", r"Start the server, or say where it is with --chat-url or OPENAI_BASE_URL"),
        ("ollama:tiny", r"Start it with: ollama serve"),
    ],
)
async def test_a_server_that_is_down_is_not_blamed_on_the_memory(name, cure, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path))
    monkeypatch.setattr("memstory.models.openai_server.RETRIES", 0)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    embedder = load_embedder(name, {"ollama_host": "http://127.0.0.1:9"})
    with pytest.raises(SetupError, match=rf"^the embedder .*tiny gave no vectors: .*127\.0\.0\.1:9.*{cure}"):
        await embedder.embed(["tea"], "document")
    await embedder.close()


def test_openai_without_a_key_names_the_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SetupError, match="OPENAI_API_KEY is not set"):
        load_embedder("openai:text-embedding-3-small")


@pytest.mark.parametrize(("name", "words"), [("openai", "allowed: openai:MODEL"), ("minilm:x", "takes no name")])
def test_an_embedder_whose_name_makes_no_sense_is_refused_at_once(name, words):
    with pytest.raises(SetupError, match=words):
        load_embedder(name)
