"""The HTTP service as a real process: its acts, what it refuses, and how it ends; of layers, and of all six."""

import json
import socket

import httpx
import pytest

from memstory.contract.errors import NotSupported
from memstory.contract.target import Item, Scope
from memstory_reference.cli import main
from memstory_reference.commands.serve import MemoryWeb
from memstory_reference.composition.systems import SYSTEMS
from memstory_reference.errors import InputError
from memstory_reference.system_memory import SYSTEM_NAMES, SystemMemory

LONG = [
    "My sister is a pilot and flies to the northern islands every week of the year.",
    "Next month she wants to take me along, if the weather over there is good.",
    "There are northern lights to be seen, so a warm coat is what one needs.",
]


def say(server, *texts, session="t"):
    answers = [server.ask("POST", "/turn", said=text, session_id=session) for text in texts]
    return answers[-1]["answer"]


def memories(server, **values):
    return {one["line"]: one for one in server.ask("GET", "/memories", **values)["memories"]}


def only(server, **values):
    ((_, memory),) = memories(server, **values).items()
    return memory


def test_a_person_sees_edits_archives_deletes_and_takes_along_what_is_remembered(server):
    # C-02, C-14, C-15, C-18, C-25, CF-14
    say(server, "I live in Oslo.", "From now on, answer in French.")
    server.ask("POST", "/end", session_id="t")
    status = server.ask("GET", "/status")
    assert status["counts"] == {"semantic": 1, "episodic": 0, "procedural": 1}
    assert status["labels"] == {"semantic": "facts", "episodic": "sessions", "procedural": "rules"}
    fact = only(server, kind="semantic")
    assert (fact["label"], fact["content"]["object"]) == ("facts", "Oslo")
    path = f"/memories/{fact['id']}"
    edited = server.ask("PATCH", path, content={"object": "Bergen", "evidence_quote": "I live in Bergen."})
    assert edited["content"]["object"] == "Bergen"
    assert [one["id"] for one in server.ask("GET", "/search", query="Bergen")["memories"]] == [fact["id"]]
    assert server.ask("POST", f"{path}/archive") == {"archived": True}
    assert server.ask("GET", "/search", query="Bergen")["memories"] == []
    assert only(server, kind="semantic", archived="true")["standing"] == "archived"
    assert server.ask("POST", f"{path}/restore") == {"restored": True}
    assert server.ask("GET", path)["id"] == fact["id"]
    assert len(server.ask("GET", "/export")["records"]) == 2
    assert server.ask("DELETE", path)["deleted"] == fact["id"]
    assert "no memory" in server.ask("GET", path, status=404)["error"]


def test_the_switch_and_what_was_said_outlive_the_process_and_its_sessions_end_with_it(serve_http):
    server = serve_http()
    say(server, *LONG)
    assert server.ask("POST", "/recall", on=False) == {"recall": False}
    code, _, err = server.end()
    assert code == 0, err
    server = serve_http()
    status = server.ask("GET", "/status")
    assert (status["recall"], status["active_sessions"], status["counts"]["episodic"]) == (False, 0, 1)


def test_voice_feedback_and_forgetting_have_their_ways_in(server):
    turns = [{"user": text, "assistant": "I see."} for text in LONG]
    assert server.ask("POST", "/voice", session_id="call", turns=turns) == {"ended": True, "waiting": 0}
    assert server.ask("GET", "/status")["counts"]["episodic"] == 1
    assert server.ask("POST", "/feedback", session_id="call", label="helpful", comment="Thanks.")["id"]
    assert "allowed: helpful" in server.ask("POST", "/feedback", session_id="call", label="fine", status=400)["error"]
    assert "Forgotten" in server.ask("POST", "/forget", what="my sister")["said"]
    assert "Forgotten" in say(server, "I live in Oslo.", "Forget where I live.")
    assert memories(server, kind="semantic") == {}


def test_who_reads_the_address_can_connect_at_once(serve_http):
    with socket.create_connection(("127.0.0.1", serve_http().port)):
        pass


def test_an_address_that_is_taken_is_not_announced(tmp_path, capsys):
    typed = ["serve", "http", "--store", str(tmp_path / "layers"), "--embedder", "none", "--port"]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main([*typed, str(port)]) == 1
    out, err = capsys.readouterr()
    assert (out, "address already in use" in err) == ("", True)
    assert err.endswith(f"http://127.0.0.1:{port} cannot be served: choose another --host or --port\n")


def test_nobody_sees_or_changes_what_is_anothers(server):
    say(server, "I live in Oslo.")
    server.ask("POST", "/end", session_id="t")
    path = f"/memories/{only(server)['id']}"
    for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/archive"), ("PATCH", "")):
        server.ask(method, path + rest, user_id="bob", content={"object": "x"}, status=404)
    assert memories(server, user_id="bob") == {}
    assert len(memories(server)) == 1


@pytest.mark.parametrize(
    ("method", "path", "values", "says"),
    [
        ("GET", "/status", {"user_id": ""}, "somebody"),
        ("POST", "/turn", {"said": "x"}, "session_id"),
        ("POST", "/turn", {"said": 5, "session_id": "t"}, "said must be text"),
        ("POST", "/turn", {"session_id": "t"}, "said must be text, and is missing"),
        ("POST", "/memories", {"text": "x", "keey": "user.name"}, "'keey' is unknown; allowed: user_id"),
        ("POST", "/turn", {"said": " ", "session_id": "t"}, "1 to 100000"),
        ("POST", "/turn", {"said": "x", "session_id": "t", "user_id": {"$ne": ""}}, "user_id must be"),
        ("GET", "/search", {}, "query must be text"),
        ("GET", "/search", {"query": "x" * 20_000}, "max_query_characters"),
        ("GET", "/memories", {"kind": "topic"}, "semantic, episodic, procedural"),
        ("GET", "/memories", {"limit": "1e9"}, "limit"),
        ("POST", "/recall", {"on": "yes"}, "true or false"),
        ("POST", "/voice", {"turns": "x", "session_id": "t"}, "turns must be"),
    ],
)
def test_a_wrong_request_is_one_sentence(server, method, path, values, says):
    assert says in server.ask(method, path, status=400, **values)["error"]


def test_an_edit_takes_known_fields_and_passes_the_guards(server):
    say(server, "I live in Oslo.")
    server.ask("POST", "/end", session_id="t")
    path = f"/memories/{only(server)['id']}"
    for content in ({}, {"id": "x"}, "x", {"object": "x", "owner": "bob"}):
        assert "content must be" in server.ask("PATCH", path, content=content, status=400)["error"]
    assert "object must be" in server.ask("PATCH", path, content={"object": 5}, status=400)["error"]
    guarded = server.ask("PATCH", path, content={"object": "4111 1111 1111 1111"}, status=400)["error"]
    assert "nothing is left" in guarded


FOREIGN = {
    "another name that leads here": ({"host": "evil.example"}, 421),
    "another port of this machine": ({"host": "127.0.0.1:1"}, 421),
    "another site": ({"origin": "https://evil.example"}, 403),
    "a site without a name": ({"origin": "null"}, 403),
    "another service of this machine": ({"origin": "http://127.0.0.1:1"}, 403),
    "a browser that says so": ({"sec-fetch-site": "cross-site"}, 403),
    "a form": ({"content-type": "text/plain"}, 415),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_what_comes_for_another_site_is_refused(server, case):
    headers, status = FOREIGN[case]
    sent = {"content-type": "application/json", **headers}
    body = json.dumps({"user_id": server.user, "session_id": "t", "said": "I live in Oslo."})
    answer = server.client.post("/turn", content=body, headers=sent)
    assert answer.status_code == status, answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert memories(server) == {}
    if status != 415:
        assert server.client.get("/export", params={"user_id": server.user}, headers=headers).status_code == status


def test_its_own_names_are_answered(server):
    for name in ("localhost", "127.0.0.1", "[::1]"):
        own = {"host": f"{name}:{server.port}", "origin": f"http://{name}:{server.port}"}
        assert server.client.get("/status", params={"user_id": server.user}, headers=own).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[1]", 400), (b"[" * 100_000, 400), (b" " * 2_000_000, 413)]
)
def test_a_body_that_is_none_is_refused(server, body, status):
    answer = server.client.post("/recall", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]


def test_nothing_but_the_page_and_its_acts_is_there(server):
    page = httpx.get(server.url)
    assert "What is remembered" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    for path in ("/../etc/passwd", "/api", "/api/memory", "/docs"):
        answer = httpx.get(server.url + path)
        assert (answer.status_code, answer.json()["error"][:16]) == (404, "there is no GET ")
    answer = httpx.request("OPTIONS", server.url + "/api/memory/turn")
    assert (answer.status_code, answer.json()["error"]) == (405, "there is no OPTIONS /api/memory/turn")


def test_a_memory_is_deleted_without_a_body_and_by_no_other_kind_of_body(server):
    say(server, "I live in Oslo.")
    server.ask("POST", "/end", session_id="t")
    path, whose = f"/memories/{only(server)['id']}", {"user_id": server.user}
    form = {"content": b"x=1", "headers": {"content-type": "text/plain"}}
    assert server.client.request("DELETE", path, params=whose, **form).status_code == 415
    assert server.client.request("DELETE", path, params=whose).status_code == 200
    assert memories(server) == {}


def test_only_this_machine_is_listened_to(server):
    others = [one[4][0] for one in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    for address in {one for one in others if not one.startswith("127.")}:
        with socket.socket() as probe:
            assert probe.connect_ex((address, server.port)) != 0
    assert server.process.poll() is None


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_every_memory_is_added_to_searched_edited_and_forgotten_over_http(serve_http, system):
    server = serve_http(system=system)
    (added,) = server.ask("POST", "/memories", text="My boat is in Bergen.")["memories"]
    (found,) = server.ask("GET", "/search", query="boat Bergen")["memories"]
    assert (found["id"], "Bergen" in found["words"]) == (added["id"], True)
    path = f"/memories/{found['id']}"
    assert server.ask("GET", path)["id"] == found["id"]
    if "text" in found["editable"]:
        edited = server.ask("PATCH", path, content={"text": "My boat is in Oslo."})
        assert "Oslo" in edited["words"]
        path = f"/memories/{edited['id']}"
    assert set(server.ask("GET", "/status")["labels"]) == set(server.ask("GET", "/status")["counts"])
    assert len(server.ask("GET", "/export")["records"]) == 1
    assert memories(server, user_id="bob") == {}
    server.ask("GET", path, user_id="bob", status=404)
    server.ask("DELETE", path)
    assert memories(server) == {}
    assert server.client.post("/dance", json={"user_id": server.user}).status_code == 404


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_what_words_are_about_is_forgotten_over_http(serve_http, system):
    server = serve_http(system=system)
    for text in ("My boat is in Bergen.", "My sister is a pilot."):
        server.ask("POST", "/memories", text=text)
    server.ask("POST", "/forget", what="my boat")
    assert "pilot" in " ".join(memories(server))
    assert "Bergen" not in " ".join(memories(server))


def test_what_no_name_id_or_words_mean_is_not_found(serve_http):
    said = serve_http(system="turns").ask("POST", "/forget", what="my boat", status=404)
    assert "nothing is remembered under 'my boat'" in said["error"]


class ByNameAlone(SystemMemory):
    """A memory that has no words for what it holds."""

    operations = frozenset({"list"})
    store_name = "nothing"

    async def list(self, scope, kinds=()):
        return []

    async def close(self):
        pass


async def test_a_memory_that_forgets_by_name_alone_says_what_to_send_in_place_of_words():
    acts = {path: answer for _, path, answer in MemoryWeb(ByNameAlone()).acts()}
    with pytest.raises(NotSupported, match=r"(?s)'my boat'.*by a name or an id.*not by words"):
        await acts["/api/memory/forget"]({"user_id": "ann", "what": "my boat"})


@pytest.mark.parametrize("system", ["topics", "pipeline", "manager", "turns"])
def test_a_memory_with_an_agent_is_talked_to_over_http(serve_http, system):
    server = serve_http(system=system)
    say(server, "My sister is Ilse.")
    assert "Ilse" in say(server, "Who is my sister?", session="later")


def test_a_memory_without_an_agent_says_so(serve_http):
    said = serve_http(system="observations").ask("POST", "/turn", said="Hello", session_id="t", status=501)
    assert "does not support 'chat'" in said["error"]


async def call_web(system, folder, path, **values):
    memory = SYSTEMS[system]
    settings = memory.settings(None, {"embedding_model": "words"}, "test", str(folder))
    opened = await memory.open(settings)
    try:
        await opened.add([Item(text="Rex is a dog.")], Scope(user="ann"))
        (hit,) = await opened.list(Scope(user="ann"))
        method, _, path = path.partition(" ")
        acts = {(one, act): answer for one, act, answer in MemoryWeb(opened).acts()}
        named = {"id": hit.id} if "{id}" in path else {}
        return await acts[method, f"/api/memory/{path}"]({"user_id": "ann", **named, **values})
    finally:
        await opened.close()


@pytest.mark.parametrize("system", ["pipeline", "turns"])
async def test_a_job_called_restore_that_is_of_the_whole_memory_is_reached_by_its_own_path(tmp_path, system):
    snapshot = await call_web(system, tmp_path / "old", "POST snapshot")
    assert await call_web(system, tmp_path / "new", "POST restore", snapshot=snapshot["rows"])
    with pytest.raises(KeyError):
        await call_web(system, tmp_path / "third", "POST memories/{id}/restore")


async def test_a_memory_that_takes_no_edits_says_so_and_not_which_fields_it_takes(tmp_path):
    with pytest.raises(NotSupported, match="no field that can be edited"):
        await call_web("observations", tmp_path, "PATCH memories/{id}", content={"text": "Rex is black."})


@pytest.mark.parametrize("session", ["", " "])
async def test_a_turn_of_a_blank_session_is_of_no_session(tmp_path, session):
    with pytest.raises(InputError, match="session_id"):
        await call_web("turns", tmp_path, "POST turn", said="Hello", session_id=session)
