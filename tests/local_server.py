"""What the fakes of model servers share: a port of this machine, whole answers and streamed ones.

`tests/conftest.py` makes it known as `memstory_tests_local_server`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, TypeVar

Fake = TypeVar("Fake")


class LocalHandler(BaseHTTPRequestHandler):
    """Hands each request to `answer`; `body` is None for a GET."""

    fake: Any
    protocol_version = "HTTP/1.1"
    json_type: ClassVar[str] = "application/json"
    stream_type: ClassVar[str]

    def answer(self, body: Any) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}"))

    def send(self, status: int, answer: Any, **headers: str) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": self.json_type, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, chunks: Iterable[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.stream_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for data in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def handle(self) -> None:
        # A client that gave up, or a stream that was cut on purpose, ends the connection and nothing else.
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is given)
        pass


def serving(fake: Fake, handler: type[LocalHandler], path: str = "") -> Iterator[Fake]:
    """Serve `fake` while the generator is suspended; its `url` says where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"fake": fake}))
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}{path}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        fake.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
