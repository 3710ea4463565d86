"""What other pages, other processes and the memory itself try at a proxy that holds a key: nobody gets it."""

import http.client
import json
import tracemalloc
from threading import Event
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

pytest.importorskip("httpx", reason="the extra proxy is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx
from memstory_tests_local_server import LocalHandler, serving

from memstory.contract.errors import SetupError, TargetError
from memstory.models import proxy as proxy_server
from memstory.models.answering import Forwarder, RuleAnswerer
from memstory.models.counted_model import CountedModel
from memstory.models.proxy import Proxy
from memstory.models.proxy_recording import Recorder, read_calls
from memstory.results.secret_values import Secrets

KEY = "sk-the-users-own"
CHAT = "chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "tea"}]}
FOREIGN_PATHS = [
    "http:%2f%2fTHIEF%2fsteal",
    "http://THIEF/steal",
    "http:/THIEF/steal",
    "/THIEF/steal",
    "%2f%2fTHIEF/steal",
    "%68ttp:%2f%2fTHIEF%2fsteal",
    "../admin/delete",
    "..%2fadmin%2fdelete",
    "%2e%2e/admin/delete",
    "chat/../../admin",
    "chat%2fcompletions",
    "chat/completions/",
    "chat//completions",
    "chat/completions/../embeddings",
    "chat/completions%00",
    "chat/completions;x",
    "chat/completions%3fx",
    "chat\\completions",
    "Chat/completions",
    "models",
    "files",
    "fine_tuning/jobs",
    "",
]


class Noting(LocalHandler):
    def answer(self, _):
        self.fake.seen.append((self.path, self.headers["Authorization"]))
        self.send(200, {"choices": [{"message": {"role": "assistant", "content": "Green."}}]})


@pytest.fixture(scope="module")
def upstream():
    yield from serving(SimpleNamespace(seen=[], stopping=Event()), Noting, "/v1")


@pytest.fixture(scope="module")
def thief():
    yield from serving(SimpleNamespace(seen=[], stopping=Event()), Noting)


@pytest.fixture(scope="module")
def running(upstream, tmp_path_factory):
    """A proxy with a key, and its recording."""
    file = tmp_path_factory.mktemp("recording") / "run.jsonl"
    with Proxy(Forwarder(upstream.url, KEY, Recorder(file, Secrets()))) as proxy:
        yield proxy, file


@pytest.fixture(scope="module")
def model(upstream):
    """The same inside a run."""
    model = CountedModel("m", server=upstream.url, key=KEY)
    yield model
    model.close()


@pytest.fixture
def proxy(running, upstream, thief):
    """Nobody has asked it yet."""
    proxy, file = running
    file.write_text(f"{file.read_text('utf-8').splitlines()[0]}\n", "utf-8")
    proxy.refused = 0
    for asked_so_far in (proxy.calls, upstream.seen, thief.seen):
        asked_so_far.clear()
    return proxy


@pytest.fixture
def recording(proxy, running):  # noqa: ARG001  (which empties it)
    return running[1]


def asked(url, target="", *, method="POST", body=ASKED, **headers):
    """Ask with this very target behind the path of `url`, byte for byte, as no client would; return status and text."""
    place = urlsplit(url)
    given = {"Host": place.netloc, "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = json.dumps(body).encode() if method == "POST" else b""
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    connection.putrequest(method, target if target.startswith("http") else f"{place.path}{target}", skip_host=True)
    for name, value in {**given, "Content-Length": str(len(data))}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(data)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def reason(text):
    """The one line of a refusal."""
    said = json.loads(text)["error"]["message"]
    assert "\n" not in said
    assert KEY not in said
    return said


def root(proxy):
    return f"http://{urlsplit(proxy.url).netloc}"


@pytest.mark.parametrize("path", FOREIGN_PATHS)
def test_no_path_leads_the_key_elsewhere_or_into_the_recording(proxy, upstream, thief, recording, path):
    status, text = asked(proxy.url, f"/{path.replace('THIEF', urlsplit(thief.url).netloc)}")
    assert (status, thief.seen, upstream.seen) == (404, [], [])
    assert "chat/completions, completions, embeddings, responses" in reason(text)
    assert read_calls(recording) == []


@pytest.mark.parametrize("path", FOREIGN_PATHS)
def test_the_memory_in_a_run_gets_the_key_no_more_than_a_page(model, upstream, thief, path):
    for seen in (upstream.seen, thief.seen):
        seen.clear()
    status, _ = asked(model.url, f"/{path.replace('THIEF', urlsplit(thief.url).netloc)}")
    with pytest.raises(TargetError, match="asked its model for /") as caught:
        model.check()
    assert (status, thief.seen, upstream.seen) == (404, [], [])
    assert len(str(caught.value)) < 400


def test_a_target_that_names_another_server_is_not_asked_there(proxy, upstream, thief):
    assert asked(proxy.url, f"{thief.url}/steal")[0] == 404
    assert (thief.seen, upstream.seen) == ([], [])


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings", "responses"])
def test_the_paths_of_the_protocol_reach_the_server_with_the_key(proxy, upstream, recording, path):
    assert asked(proxy.url, f"/{path}")[0] == 200
    assert upstream.seen == [(f"/v1/{path}", f"Bearer {KEY}")]
    assert [call.path for call in read_calls(recording)] == [path]


def test_each_proxy_has_a_word_of_its_own_that_nobody_guesses():
    with Proxy(RuleAnswerer([])) as one, Proxy(RuleAnswerer([])) as other:
        words = [urlsplit(proxy.url).path for proxy in (one, other)]
    assert words[0] != words[1]
    assert {len(word) for word in words} == {len(f"/{'0' * 32}/v1")}


@pytest.mark.parametrize("word", ["", "/", f"/{'0' * 32}", "/..", "/%2e", "/%c3%b6"])
@pytest.mark.parametrize("request_line", ["POST /v1/chat/completions", "GET /memstory/calls", "GET /v1/models"])
def test_without_the_word_nothing_is_answered_told_or_recorded(proxy, upstream, recording, request_line, word):
    method, path = request_line.split()
    asked(proxy.url, f"/{CHAT}")
    status, text = asked(root(proxy), f"{word}{path}", method=method)
    assert status == 404
    assert "the whole base URL" in reason(text)
    assert urlsplit(proxy.url).path.split("/")[1] not in text
    assert (len(upstream.seen), len(proxy.calls), len(read_calls(recording))) == (1, 1, 1)
    assert (proxy.refused, proxy.failures) == (1, [])


def test_half_of_the_word_is_not_enough(proxy, upstream):
    half = urlsplit(proxy.url).path[:20]
    assert asked(root(proxy), f"{half}/v1/{CHAT}")[0] == 404
    assert upstream.seen == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:PORT", "127.0.0.1.evil.example:PORT", "localhost.",
                                  "evil.example:80@127.0.0.1:PORT", "0.0.0.0:PORT", ""])  # fmt: skip
@pytest.mark.parametrize("request_line", [f"POST /v1/{CHAT}", "GET /memstory/calls"])
def test_a_foreign_name_that_leads_here_is_not_answered(proxy, upstream, recording, request_line, host):
    method, path = request_line.split()
    url = proxy.url.removesuffix("/v1")
    status, text = asked(url, path, method=method, Host=host.replace("PORT", str(urlsplit(url).port)))
    assert status == 421
    assert "--host-name" in reason(text)
    assert (upstream.seen, read_calls(recording)) == ([], [])


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"])
def test_the_names_of_this_machine_are_answered_with_any_port(proxy, name):
    # The port that a client sees is another one behind a tunnel.
    for port in (f":{urlsplit(proxy.url).port}", ":9", ""):
        assert asked(proxy.url, f"/{CHAT}", Host=f"{name}{port}")[0] == 200


def test_a_name_that_was_given_is_answered_too(upstream):
    with Proxy(Forwarder(upstream.url, KEY), host_names=["Host.Docker.internal"]) as proxy:
        assert asked(proxy.url, f"/{CHAT}", Host="host.docker.internal:8089")[0] == 200
        assert asked(proxy.url, f"/{CHAT}", Host="docker.internal:8089")[0] == 421


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""},
                                     {"Origin": "http://127.0.0.1:9"}, {"Origin": "https://127.0.0.1:PORT"},
                                     {"Origin": "http://localhost:PORT"}, {"Sec_Fetch_Site": "cross-site"},
                                     {"Sec_Fetch_Site": "same-site"}, {"Sec_Fetch_Site": ""}])  # fmt: skip
@pytest.mark.parametrize("request_line", [f"POST /v1/{CHAT}", "GET /memstory/calls"])
def test_another_site_is_refused_even_with_the_word(proxy, upstream, recording, request_line, headers):
    method, path = request_line.split()
    url = proxy.url.removesuffix("/v1")
    given = {name: value.replace("PORT", str(urlsplit(url).port)) for name, value in headers.items()}
    status, text = asked(url, path, method=method, **given)
    assert status == 403
    assert "another site" in reason(text)
    assert (upstream.seen, read_calls(recording)) == ([], [])


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "", None])
def test_what_a_form_can_send_is_refused(proxy, upstream, kind):
    status, text = asked(proxy.url, f"/{CHAT}", Content_Type=kind)
    assert (status, upstream.seen) == (415, [])
    assert "application/json" in reason(text)


def test_what_the_proxy_serves_itself_may_be_asked_from_the_address_bar(proxy):
    given = {"Origin": root(proxy), "Sec_Fetch_Site": "none", "Content_Type": "Application/JSON; charset=utf-8"}
    assert asked(proxy.url, f"/{CHAT}", **given)[0] == 200
    assert asked(proxy.url.removesuffix("/v1"), "/memstory/calls", method="GET", Sec_Fetch_Site="none")[0] == 200


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\r", f"{KEY} {KEY}\x00", "schlüssel"])
def test_a_key_that_no_header_can_have_is_said_without_the_key(upstream, key):
    with pytest.raises(SetupError, match="the key") as caught:
        Forwarder(upstream.url, key)
    assert KEY not in str(caught.value)


def test_a_password_in_the_servers_address_is_not_told():
    with Proxy(Forwarder("http://ana:hunter2@127.0.0.1:9/v1")) as proxy:
        status, text = asked(proxy.url, f"/{CHAT}")
    assert status == 502
    assert "hunter2" not in text
    assert "no answer from http://127.0.0.1:9/v1" in proxy.failures[0]


@pytest.mark.parametrize("url", ["http://[bad/v1", "http://box:99999999/v1", "http://", "ftp://box/v1"])
def test_an_address_that_is_none_is_one_line(url):
    with pytest.raises(SetupError, match="is not the URL of a server") as caught:
        Forwarder(url)
    assert "\n" not in str(caught.value)


def test_of_a_body_no_more_than_its_limit_is_kept(proxy, upstream, monkeypatch):
    monkeypatch.setattr(proxy_server, "BODY_BYTES", 1000)
    piece = b" " * 100_000
    tracemalloc.start()
    try:
        answer = httpx.post(
            f"{proxy.url}/{CHAT}",
            content=(piece for _ in range(200)),
            headers={"Content-Type": "application/json"},
            timeout=60,
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.status_code, upstream.seen) == (413, [])
    assert "1,000 bytes" in reason(answer.text)
    assert most < 10_000_000
