"""Turns over HTTP with a model that streams, over both protocols: the answer is the reply, once and alone."""

import json

import pytest

SEARCH = {
    "topics": "search_memory",
    "manager": "search_memories",
    "pipeline": "recall_memories",
    "turns": "recall",
    "layers": None,
}
"""The memories with an agent of their own, and the tool of each that looks into it."""

LINES = ["The bees are kept in Bergen by the old keeper.", "The hives stand by the fjord behind the house."]


@pytest.mark.parametrize("system", SEARCH)
def test_a_turn_has_the_streamed_reply_once_and_nothing_of_what_else_the_model_says(serve_http, streaming, system):
    model = streaming(SEARCH[system])
    server = serve_http("--chat", model.name, system=system)
    turns = [server.ask("POST", "/turn", said=line, session_id="t") for line in LINES]
    assert [one["answer"] for one in turns] == model.own_replies()
    assert len(turns) == model.replies
    if system == "layers":
        assert server.ask("POST", "/end", session_id="t")["waiting"] == 0
        assert model.asides >= len(LINES)
    assert model.internal not in json.dumps([turns, server.ask("GET", "/status"), server.ask("GET", "/export")])
    code, out, err = server.end()
    assert (code, out) == (0, ""), err


def test_status_and_end_say_how_many_turns_wait(serve_http, ollama_fake, ollama_server, monkeypatch):
    is_down = [True]

    def reply(body):
        if body.get("format") and is_down[0]:
            raise ollama_fake.ApiError(503, "overloaded")
        return {"content": '{"facts": [], "rules": []}' if body.get("format") else "Noted."}

    ollama_server.reply = reply
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    server = serve_http("--chat", "ollama:qwen3:4b")
    for line in LINES:
        server.ask("POST", "/turn", said=line, session_id="t")
    assert server.ask("POST", "/end", session_id="t") == {"ended": False, "waiting": len(LINES)}
    assert server.ask("GET", "/status")["waiting"] == len(LINES)
    (note,) = server.ask("POST", "/turn", said="It rains.", session_id="t")["notes"]
    assert "wait" in note
    is_down[0] = False
    assert server.ask("POST", "/end", session_id="t")["ended"] is True
    assert server.ask("GET", "/status")["waiting"] == 0
