"""A REST memory with users that keeps its notes in the folder in which it runs: `fake_rest_server.py PORT [WORD]`.

The word `mute` makes it run without listening, `broken` end at once.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

NOTES = Path("notes.json")
TURN = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        with TURN:
            self.route()

    def route(self):
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        notes = json.loads(NOTES.read_text("utf-8")) if NOTES.exists() else []
        user, id_ = asked.get("user") or body.get("user"), url.path.strip("/").partition("/")[2]
        mine = [note for note in notes if note["user"] == user]
        match self.command, id_:
            case "POST", "":
                note = {"id": f"n{len(notes) + 1}.{time.time_ns()}", "user": user, "text": body["text"]}
                self.answer([*notes, note], note)
            case "GET", "":
                words = set(asked.get("q", "").lower().split())
                scored = [{**note, "score": len(words & set(note["text"].lower().split()))} for note in mine]
                found = sorted((note for note in scored if note["score"] or not words), key=lambda one: -one["score"])
                self.answer(notes, found[: int(asked.get("limit", 1000))])
            case "DELETE", "":
                self.answer([note for note in notes if note["user"] != user], [])
            case _ if id_ not in [note["id"] for note in mine]:
                self.answer(notes, {"error": "no such note"}, status=404)
            case "GET", _:
                self.answer(notes, next(note for note in mine if note["id"] == id_))
            case "DELETE", _:
                self.answer([note for note in notes if note["id"] != id_], [])

    do_GET = do_POST = do_DELETE = serve  # noqa: N815  (the names that the base class calls)

    def answer(self, notes, tree, status=200):
        NOTES.write_text(json.dumps(notes), "utf-8")
        body = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    how = sys.argv[2] if len(sys.argv) > 2 else ""
    if how == "broken":
        sys.exit("no database at /srv/notes")
    if how == "mute":
        time.sleep(600)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
