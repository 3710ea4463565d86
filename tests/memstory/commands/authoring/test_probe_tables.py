"""`memstory probe` of a table of a REST server."""

SERVER = """
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

notes = []


class Notes(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/add":
            notes.append({"id": str(len(notes)), "user": body["user"], "text": body["text"]})
        found = [note for note in notes if note["user"] == body["user"]] if self.path == "/find" else notes[-1]
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Notes).serve_forever()
"""
TABLE = """
[targets.notes]
type = "http"
command = ["python", "server.py", "{port}"]
lacks = ["crash"]

[targets.notes.add]
path = "/add"
body = { user = "{user}", text = "{text}" }
reply = { id = "id" }

[targets.notes.search]
path = "/find"
body = { user = "{user}", text = "{query}" }
reply = { id = "id", text = "text" }
"""


def test_a_table_gets_what_it_has_beside_its_operations_and_what_it_lacks(terminal):
    terminal.save(SERVER, "server.py")
    terminal.save(TABLE, "memstory.toml")
    said = terminal.type("probe", "notes")
    lines = [line.strip() for line in said.out.splitlines()]
    assert said.code == 1
    assert 'lacks = ["crash", "persistent"]' in lines
    (more,) = [line for line in lines if line.startswith("capabilities = ")]
    assert "add.exact" in more
    assert "after a restart the memory is not found" in said.out
