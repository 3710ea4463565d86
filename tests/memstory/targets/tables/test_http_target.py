"""A REST memory behind a table: as it should be, and in every way in which a server can fail."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from memstory.conformance import TargetContract
from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, SetupError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.tables.http import HttpFactory
from memstory.targets.tables.reading import parse_table

ANN, BOB = Scope(user="ann"), Scope(user="bob")
KEY = "sk-0123456789abcdef"
GONE = r"the connection broke|is gone"

TABLE = {
    "type": "http",
    "headers": {"Authorization": "Bearer ${NOTES_KEY}"},
    "call_seconds": 5,
    "add": {"path": "/users/{user}/notes", "body": {"text": "{text}"}, "reply": {"id": "id"}},
    "get": {"path": "/users/{user}/notes/{id}", "reply": {"id": "id", "text": "text"}},
    "search": {
        "path": "/users/{user}/search",
        "body": {"query": "{query}", "limit": "{top_k}"},
        "reply": {"at": "found", "id": "id", "text": "text", "score": "score"},
        "scores": "similarity",
    },
    "list": {
        "path": "/users/{user}/notes",
        "query": {"page": "{page}", "size": "{page_size}"},
        "reply": {"at": "notes", "id": "id", "text": "text"},
        "page_size": 2,
    },
    "update": {"method": "PUT", "path": "/users/{user}/notes/{id}", "body": {"text": "{text}"}},
    "delete": {"method": "DELETE", "path": "/users/{user}/notes/{id}", "missing": "HTTP 404"},
    "delete_all": {"method": "DELETE", "path": "/users/{user}/notes"},
    "capabilities": ["add.verbatim"],
}


class Notes(ThreadingHTTPServer):
    """A small REST memory; `trouble` is called before each request, and may answer in its place by returning True."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.notes, self.made, self.seen, self.trouble = {}, 0, [], None
        self.turn = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Say nothing of clients that went away: several tests are about that."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, tree=None, **headers):
        self.write(status, b"" if tree is None else json.dumps(tree).encode(), **headers)

    def write(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.seen.append((self.command, self.path, body))
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self.answer(401, {"error": f"bad key {self.headers.get('Authorization')}"})
        elif self.server.trouble is None or not self.server.trouble(self):
            with self.server.turn:
                self.route(body)

    do_GET = do_POST = do_PUT = do_DELETE = serve  # noqa: N815  (the names that the base class calls)

    def route(self, body):
        url = urlsplit(self.path)
        _, _, user, what, *rest = map(unquote, url.path.split("/"))
        notes = self.server.notes.setdefault(user, {})
        match self.command, what, rest:
            case "POST", "notes", []:
                self.server.made += 1
                id_ = f"n{self.server.made}"
                notes[id_] = body["text"]
                self.answer(201, {"id": id_})
            case "POST", "search", []:
                self.answer(200, {"found": found(notes, body["query"])[: body.get("limit", 10)]})
            case "GET", "notes", []:
                asked = parse_qs(url.query)
                start, size = (int(asked["page"][0]) - 1) * int(asked["size"][0]), int(asked["size"][0])
                rows = [{"id": id_, "text": text} for id_, text in notes.items()]
                self.answer(200, {"notes": rows[start : start + size]})
            case "DELETE", "notes", []:
                notes.clear()
                self.answer(204)
            case _, "notes", [id_] if id_ not in notes:
                self.answer(404, {"error": "no such note"})
            case "GET", "notes", [id_]:
                self.answer(200, {"id": id_, "text": notes[id_]})
            case "PUT", "notes", [id_]:
                notes[id_] = body["text"]
                self.answer(204)
            case "DELETE", "notes", [id_]:
                del notes[id_]
                self.answer(204)
            case _:
                self.answer(405)


def found(notes, query):
    asked = set(query.lower().split())
    rows = [{"id": id_, "text": text, "score": len(asked & set(text.lower().split()))} for id_, text in notes.items()]
    return sorted((row for row in rows if row["score"]), key=lambda row: -row["score"])


@contextlib.contextmanager
def served():
    server = Notes()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NOTES_KEY", KEY)
    with served() as server:
        yield server


def factory_of(url, **changed):
    return HttpFactory(parse_table("notes", {**TABLE, "url": url, **changed}, "memstory.toml"))


@pytest.fixture
def opened(server, tmp_path):
    @contextlib.asynccontextmanager
    async def make(url=None, **changed):
        factory = factory_of(url or server.url, **changed)
        await factory.start(tmp_path)
        target = factory.target()
        await target.open(Environment(workspace=str(tmp_path / "case"), owner="ann"), StoryClock())
        try:
            yield target
        finally:
            await target.close()
            await factory.stop()

    return make


def once(*answers):
    """Give each answer once, in order, and be no trouble after that."""
    left = list(answers)

    def trouble(request):
        return bool(left) and (left.pop(0)(request), True)[1]

    return trouble


def always(answer):
    return lambda request: (answer(request), True)[1]


def cut(request):
    request.close_connection = True
    request.connection.close()


class TestNotes(TargetContract):
    """The contract of all targets, on the server as it should be."""

    @classmethod
    def setup_class(cls):
        cls.stack = contextlib.ExitStack()
        patch = cls.stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("NOTES_KEY", KEY)
        server = cls.stack.enter_context(served())
        cls.factory = staticmethod(lambda: factory_of(server.url))
        super().setup_class()

    @classmethod
    def teardown_class(cls):
        super().teardown_class()
        cls.stack.close()


def test_what_a_table_maps_is_what_the_target_can(monkeypatch):
    monkeypatch.setenv("NOTES_KEY", KEY)
    able = factory_of("http://127.0.0.1:1").capabilities({})
    assert able >= {"add", "get.id", "search", "search.scores", "list", "update", "delete.reports_missing",
                    "delete.scope", "scope.user", "add.verbatim"}  # fmt: skip
    assert able.isdisjoint({"add.key", "search.where", "scope.session", "crash", "chat"})
    quiet = {**TABLE["delete"]}
    del quiet["missing"]
    assert "delete.reports_missing" not in factory_of("http://127.0.0.1:1", delete=quiet).capabilities({})


def test_users_of_a_server_that_others_share_get_names_of_the_case():
    factory = factory_of("http://127.0.0.1:1")
    assert factory.shares({})
    assert "scope.names" not in factory.abilities({})


async def test_every_page_of_a_list_is_read(opened):
    async with opened() as target:
        await target.add([Item(text=f"note {number}") for number in range(5)], ANN)
        assert [hit.text for hit in await target.list(ANN)] == [f"note {number}" for number in range(5)]
        assert len(await target.list(ANN, limit=3)) == 3


async def test_an_unknown_memory_is_none_false_or_refused(opened):
    async with opened() as target:
        assert await target.get(Ref(id="gone"), ANN) is None
        assert await target.delete(Ref(id="gone"), ANN) is False
        with pytest.raises(Refused):
            await target.update(Ref(id="gone"), Item(text="x"), ANN)


@pytest.mark.parametrize("text", ["ünïcode ✓ 漢字", 'quotes " and \\', "{braces} ${NOTES_KEY}", "line\nbreak\x07"])
async def test_texts_come_back_as_they_went(opened, text):
    async with opened() as target:
        receipt = await target.add([Item(text=text)], ANN)
        assert (await target.get(Ref(id=receipt.items[0].id), ANN)).text == text


@pytest.mark.parametrize("id_", ["..", ".", "a/b", "a?b=c", "a#b", "../bob/notes", "%2e%2e", " "])
async def test_no_id_leads_anywhere_else(opened, server, id_):
    async with opened() as target:
        await target.add([Item(text="stays")], ANN)
        assert await target.delete(Ref(id=id_), ANN) is False
        assert [hit.text for hit in await target.list(ANN)] == ["stays"]
    (path,) = [path for method, path, _ in server.seen if method == "DELETE"]
    assert path.count("/") == 4


async def test_an_empty_id_is_refused_and_not_sent(opened, server):
    async with opened() as target:
        with pytest.raises(Refused, match="empty value"):
            await target.delete(Ref(id=""), ANN)
    assert server.seen == []


@pytest.mark.parametrize("text", ["half \ud800", float("nan")])
async def test_what_cannot_be_sent_is_refused_before_it_is(opened, server, text):
    async with opened() as target:
        with pytest.raises(Refused, match="cannot be sent"):
            await target.add([Item(text=text)], ANN)
    assert server.seen == []


@pytest.mark.parametrize("status", [400, 403, 409, 413, 422])
async def test_a_status_that_declines_is_a_refusal_with_the_servers_words(opened, server, status):
    server.trouble = always(lambda request: request.answer(status, {"error": "the text is too long"}))
    async with opened() as target:
        with pytest.raises(Refused, match="too long"):
            await target.add([Item(text="x")], ANN)


@pytest.mark.parametrize("status", [301, 404, 405, 500, 501])
async def test_any_other_status_is_the_target_breaking(opened, server, status):
    server.trouble = always(lambda request: request.answer(status, {"error": "boom"}, Location="/elsewhere"))
    async with opened() as target:
        with pytest.raises(TargetError, match=f"HTTP {status}.*\n?.*boom"):
            await target.add([Item(text="x")], ANN)
    assert len(server.seen) == 1


async def test_a_server_that_does_not_know_us_is_for_the_user_to_mend_and_the_key_is_not_told(opened, monkeypatch):
    monkeypatch.setenv("NOTES_KEY", "wrong-key-123")
    async with opened() as target:
        with pytest.raises(SetupError) as raised:
            await target.add([Item(text="x")], ANN)
    assert "headers" in str(raised.value)
    assert "wrong-key-123" not in str(raised.value)


@pytest.mark.parametrize("status", [400, 500])
async def test_a_key_that_the_server_repeats_is_not_told(opened, server, status):
    server.trouble = always(lambda request: request.answer(status, dict(request.headers)))
    async with opened() as target:
        with pytest.raises((Refused, TargetError)) as raised:
            await target.add([Item(text="x")], ANN)
    assert "${NOTES_KEY}" in str(raised.value)
    assert KEY not in str(raised.value)


async def test_a_key_in_a_reply_that_cannot_be_read_is_not_told(opened, server):
    server.trouble = always(lambda request: request.write(200, f"debug: {request.headers['Authorization']}".encode()))
    async with opened() as target:
        with pytest.raises(TargetError, match="not JSON") as raised:
            await target.add([Item(text="x")], ANN)
    assert KEY not in str(raised.value)


def test_a_key_that_is_not_set_is_named_with_its_table(monkeypatch):
    monkeypatch.delenv("NOTES_KEY", raising=False)
    with pytest.raises(SetupError, match=r"\[targets.notes\] 'headers.Authorization' .* NOTES_KEY, which is not set"):
        factory_of("http://127.0.0.1:1").target()


def test_a_key_with_a_line_break_is_refused_without_being_told(monkeypatch):
    monkeypatch.setenv("NOTES_KEY", "abc\n")
    with pytest.raises(SetupError, match="line break") as raised:
        factory_of("http://127.0.0.1:1").target()
    assert "abc" not in str(raised.value)


async def test_the_report_names_the_server_without_what_is_secret_in_its_address(opened, server):
    async with opened(url=server.url.replace("//", "//me:pass@")) as target:
        assert await target.about() == {"server": server.url}


async def test_a_server_that_is_not_there_is_for_the_user_to_start(opened):
    async with opened(url="http://127.0.0.1:1") as target:
        with pytest.raises(SetupError, match=r"no server answers at http://127.0.0.1:1 .*Start it"):
            await target.search(Query(text="x"), ANN)


async def test_a_server_that_dies_in_the_middle_is_the_target_breaking(opened):
    with served() as mortal:
        async with opened(url=mortal.url) as target:
            await target.add([Item(text="x")], ANN)
            mortal.shutdown()
            mortal.server_close()
            mortal.trouble = always(cut)
            with pytest.raises(TargetError, match=GONE):
                await target.list(ANN)
            with pytest.raises(TargetError, match=GONE):
                await target.add([Item(text="y")], ANN)


async def test_a_server_that_hangs_is_told_with_the_limit(opened, server):
    server.trouble = always(lambda _: time.sleep(0.6))
    async with opened(call_seconds=0.1) as target:
        with pytest.raises(TargetError, match=r"POST /users/.*/notes: no reply within 0.1 s"):
            await target.add([Item(text="x")], ANN)


async def test_a_server_that_drips_does_not_get_round_the_limit(opened, server):
    def drip(request):
        request.send_response(200)
        request.send_header("Content-Length", "100")
        request.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(20):
                request.wfile.write(b" ")
                time.sleep(0.05)

    server.trouble = always(drip)
    async with opened(call_seconds=0.2) as target:
        with pytest.raises(TargetError, match="no reply within"):
            await target.add([Item(text="x")], ANN)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"found": [{"id": "n1", "te', "not JSON"),
        (b"", "not JSON"),
        (b"<html>Bad Gateway</html>", "not JSON"),
        (b'{"found": "nothing"}', "a text where rows are expected"),
        (b'{"results": []}', "there is no 'found'"),
        (b'{"found": [{"id": "n1", "score": 1}]}', "there is no 'text'"),
        (b'{"found": [{"id": "n1", "text": 7, "score": 1}]}', "the text is not a string"),
        (b'{"found": [{"id": ["n1"], "text": "x", "score": 1}]}', "neither a text nor a number"),
        (b'{"found": [{"id": "n1", "text": "x", "score": NaN}]}', "not a finite number"),
        (b'{"found": [{"id": "n1", "text": "x", "score": "high"}]}', "not a finite number"),
        (b'{"found": [3]}', "row 1"),
        (b'{"found": [{"id": "n1", "text": "\xff", "score": 1}]}', "cannot be read as text"),
    ],
)
async def test_a_reply_that_is_not_what_the_table_says_is_the_target_breaking(opened, server, body, said):
    server.trouble = always(lambda request: request.write(200, body))
    async with opened() as target:
        with pytest.raises(TargetError, match=said):
            await target.search(Query(text="x"), ANN)


async def test_more_than_was_asked_for_is_cut_and_duplicates_are_left_for_stories_to_find(opened, server):
    rows = [{"id": "n1", "text": "same", "score": 1.0}] * 7
    server.trouble = always(lambda request: request.answer(200, {"found": rows}))
    async with opened() as target:
        assert [hit.id for hit in await target.search(Query(text="x", top_k=3), ANN)] == ["n1"] * 3


async def test_other_owners_rows_are_left_for_stories_to_find(opened, server):
    server.trouble = lambda request: (
        request.path.endswith("/search")
        and (request.answer(200, {"found": [{"id": "n9", "text": "bob's secret", "score": 1}]}), True)[1]
    )
    async with opened() as target:
        assert [hit.text for hit in await target.search(Query(text="secret"), ANN)] == ["bob's secret"]


async def test_a_page_that_never_ends_is_the_target_breaking(opened, server):
    rows = [{"id": "n1", "text": "a"}, {"id": "n2", "text": "b"}]
    server.trouble = always(lambda request: request.answer(200, {"notes": rows}))
    async with opened() as target:
        with pytest.raises(TargetError, match="page 2 is the same"):
            await target.list(ANN)


async def test_reading_is_tried_again_when_the_connection_breaks_and_writing_is_not(opened, server):
    async with opened() as target:
        receipt = await target.add([Item(text="x")], ANN)
        server.trouble = once(cut, cut)
        assert (await target.get(Ref(id=receipt.items[0].id), ANN)).text == "x"
        assert len(server.seen) == 4
        server.trouble = once(cut)
        with pytest.raises(TargetError, match="the connection broke"):
            await target.add([Item(text="y")], ANN)
        server.trouble = once(cut)
        with pytest.raises(TargetError, match="the connection broke"):
            await target.delete(Ref(id=receipt.items[0].id), ANN)
        assert len(server.seen) == 6


async def test_reading_is_given_up_after_the_retries(opened, server):
    server.trouble = always(lambda request: request.answer(503, {"error": "busy"}))
    async with opened(retries=1) as target:
        with pytest.raises(TargetError, match=r"HTTP 503"):
            await target.list(ANN)
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_says_when_to_come_again_is_asked_again_whatever_the_method(opened, server, status):
    server.trouble = once(lambda request: request.answer(status, Retry_After="0"))
    async with opened() as target:
        await target.add([Item(text="x")], ANN)
        assert len(await target.list(ANN)) == 1
    assert [method for method, _, _ in server.seen] == ["POST", "POST", "GET"]


@pytest.mark.parametrize("wait", ["3600", "Fri, 31 Dec 9999 23:59:59 GMT", "soon"])
async def test_a_wait_beyond_the_limit_or_without_sense_is_no_retry(opened, server, wait):
    server.trouble = always(lambda request: request.answer(429, {"error": "slow down"}, Retry_After=wait))
    async with opened() as target:
        with pytest.raises(TargetError, match="slow down"):
            await target.add([Item(text="x")], ANN)
    assert len(server.seen) == 1


async def test_a_date_in_the_past_means_now(opened, server):
    server.trouble = once(lambda request: request.answer(429, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT"))
    async with opened() as target:
        await target.add([Item(text="x")], ANN)
    assert len(server.seen) == 2


async def test_a_reply_without_end_is_cut_off(opened, server, monkeypatch):
    monkeypatch.setattr("memstory.targets.tables.http_transport.MOST_BYTES", 1000)
    server.trouble = always(lambda request: request.write(200, b"x" * 5000))
    async with opened() as target:
        with pytest.raises(TargetError, match="the reply has more than"):
            await target.add([Item(text="x")], ANN)


async def test_users_of_two_cases_never_meet_on_one_server(opened, server, tmp_path):
    async with opened() as target:
        await target.add([Item(text="mine")], ANN)
        other = factory_of(server.url).target()
        await other.open(Environment(workspace=str(tmp_path / "other"), owner="ann"), StoryClock())
        assert await other.list(ANN) == []
        await other.close()
        assert len(await target.list(ANN)) == 1
        assert await target.list(BOB) == []


async def test_a_condition_without_a_place_in_the_table_is_not_supported(opened):
    async with opened() as target:
        with pytest.raises(NotSupported):
            await target.search(Query(text="x", where={"topic": "y"}), ANN)


async def test_a_path_that_wants_what_the_step_does_not_give_is_not_supported(opened, server):
    add = {**TABLE["add"], "path": "/users/{user}/notes/{key}", "method": "PUT"}
    async with opened(add=add) as target:
        with pytest.raises(NotSupported, match="does not give"):
            await target.add([Item(text="x")], ANN)
    assert server.seen == []


async def test_lists_truth_values_and_objects_stand_in_a_query_string(opened, server):
    search = {
        **TABLE["search"],
        "method": "GET",
        "query": {"q": "{query}", "k": "{top_k}", "kind": "{kinds}", "fresh": True, "where": "{where}"},
    }
    del search["body"]
    server.trouble = always(lambda request: request.answer(200, {"found": []}))
    async with opened(search=search) as target:
        await target.search(Query(text="a&b=c", kinds=["x", "y"], where={"n": 1}), ANN)
    asked = parse_qs(urlsplit(server.seen[0][1]).query)
    assert asked == {"q": ["a&b=c"], "kind": ["x", "y"], "fresh": ["true"], "where": ['{"n": 1}']}


@pytest.mark.parametrize("query", [None, {"k": "{top_k}", "kind": "fact"}])
async def test_a_path_keeps_its_own_query_beside_that_of_the_table(opened, server, query):
    search = {**TABLE["search"], "method": "GET", "path": "/users/{user}/search?fresh=1&kind=any&raw&q={query}"}
    del search["body"]
    server.trouble = always(lambda request: request.answer(200, {"found": []}))
    async with opened(search=search if query is None else {**search, "query": query}) as target:
        await target.search(Query(text="a&b=ö #1", top_k=3), ANN)
    asked = parse_qs(urlsplit(server.seen[0][1]).query, keep_blank_values=True)
    own = {"fresh": ["1"], "kind": ["any"], "raw": [""], "q": ["a&b=ö #1"]}
    assert asked == (own if query is None else {**own, "k": ["3"], "kind": ["fact"]})


async def test_a_request_is_shown_with_its_method_path_and_body_and_without_the_key(opened):
    add = {**TABLE["add"], "body": {"text": "{text}", "by": "{source}"}}
    async with opened(add=add) as target:
        await target.add([Item(text="tea", source=f"key {KEY}")], ANN)
        await target.list(ANN)
        with pytest.raises(Refused):
            await target.add([Item(text="half \ud800")], ANN)
        sent = [re.sub(r"ann-\w+", "ann-CASE", request) for request in target.take_requests()]
    assert sent == [
        'POST /users/ann-CASE/notes {"text": "tea", "by": "key ${NOTES_KEY}"}',
        "GET /users/ann-CASE/notes?page=1&size=2",
        "memstory.toml: [targets.notes.add]",
    ]
