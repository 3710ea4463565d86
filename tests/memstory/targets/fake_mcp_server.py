"""A small MCP server over stdio, by hand, so that it starts at once and can misbehave in every way.

Memories lie in a JSON file: `fake_mcp_server.py FILE [--slow SECONDS] [--noise] [--hang TOOL] [--die TOOL] …`
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

TOOLS = {
    "remember": ["text", "user", "session", "kind", "key", "id"],
    "recall": ["query", "k", "user", "session"],
    "all": ["page", "page_size", "user"],
    "look": ["id", "key", "user"],
    "change": ["id", "text"],
    "forget": ["id"],
    "forget_all": ["user"],
}


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--grandchild", type=Path)
    for flag in ("noise", "stay", "duplicates", "nan", "others", "silent", "exit"):
        parser.add_argument(f"--{flag}", action="store_true")
    for told in ("hang", "die", "malformed", "fail", "prose"):
        parser.add_argument(f"--{told}", default="")
    return parser.parse_args()


class Memory:
    def __init__(self, told):
        self.told = told
        self.rows = json.loads(told.file.read_text("utf-8")) if told.file.exists() else []

    def keep(self):
        self.told.file.write_text(json.dumps(self.rows), "utf-8")

    def of(self, user):
        return [row for row in self.rows if self.told.others or row.get("user") == user]

    def remember(self, text, **fields):
        key = fields.get("key")
        self.rows = [row for row in self.rows if key is None or (row.get("key"), row["user"]) != (key, fields["user"])]
        numbers = [int(row["id"]) for row in self.rows]
        row = {"id": str(max(numbers, default=0) + 1), "text": text, **fields}
        self.rows.append(row)
        self.keep()
        return {"memory": {"id": row["id"]}}

    def recall(self, query, k=None, user=None, session=None):
        words = set(query.lower().strip("?.").split())
        found = [row for row in self.of(user) if session is None or row.get("session") == session]
        scored = [{**row, "score": len(words & set(row["text"].lower().strip(".").split()))} for row in found]
        best = sorted((row for row in scored if row["score"]), key=lambda row: -row["score"])
        if self.told.duplicates:
            best = [row for row in best for _ in range(2)]
        if self.told.nan:
            best = [{**row, "score": float("nan")} for row in best]
        return {"hits": best}

    def all(self, page=1, page_size=None, user=None):
        rows = self.of(user)
        return {"memories": rows[(page - 1) * page_size :][:page_size] if page_size else rows}

    def look(self, id=None, key=None, user=None):  # noqa: A002
        found = [row for row in self.of(user) if (key is None and row["id"] == id) or (key and row.get("key") == key)]
        return found[0] if found else "no such memory"

    def change(self, id, text):  # noqa: A002
        row = next((row for row in self.rows if row["id"] == id), None)
        if row is None:
            return "no such memory"
        row["text"] = text
        self.keep()
        return {"memory": {"id": id}}

    def forget(self, id):  # noqa: A002
        left = [row for row in self.rows if row["id"] != id]
        gone, self.rows = len(left) < len(self.rows), left
        self.keep()
        return {"gone": id} if gone else "no such memory"

    def forget_all(self, user):
        self.rows = [row for row in self.rows if row["user"] != user]
        self.keep()
        return {"gone": user}


def answer(message, memory, told):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1.0"},
        }
    if method == "tools/list":
        tools = [
            {
                "name": name,
                "description": f"To {name}.",
                "inputSchema": {"type": "object", "properties": {one: {"type": "string"} for one in arguments}},
            }
            for name, arguments in TOOLS.items()
        ]
        return {"tools": tools}
    return called(params["name"], params.get("arguments", {}), memory, told)


def called(name, arguments, memory, told):
    if name == told.die:
        sys.stderr.write("out of luck\n")
        sys.exit(3)
    if name == told.hang:
        time.sleep(600)
    if name == told.malformed:
        return {"content": [{"type": "text", "text": '{"memory": '}]}
    if name == told.fail:
        return {"content": [{"type": "text", "text": "Error: the disk is full"}]}
    if name not in TOOLS:
        return {"content": [{"type": "text", "text": f"no tool {name}"}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(getattr(memory, name)(**arguments))}]}


def main():
    told = parsed()
    time.sleep(told.slow)
    if told.exit:
        sys.exit("no database here")
    if told.grandchild:
        child = subprocess.Popen(["sleep", "600"])  # noqa: S607
        told.grandchild.write_text(str(child.pid))
    if told.noise:
        print("Welcome to fake!\n{not json", flush=True)  # noqa: T201
    memory = Memory(told)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and not told.silent:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message, memory, told)}
            print(json.dumps(reply), flush=True)  # noqa: T201
            if told.noise:
                print(f"handled {message['method']}", flush=True)  # noqa: T201
    if told.stay:
        time.sleep(600)


if __name__ == "__main__":
    main()
