"""`memstory mcp`: the tools of an MCP server, what they reply, and the draft of a target that uses them."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from memstory.commands.command import FINDINGS, OK, Command, add_json, number_above, parser_of
from memstory.commands.output import say, say_aside, say_json, table
from memstory.contract.errors import SetupError
from memstory.contract.target import ToolSchema, Tree
from memstory.results.runs import quantity
from memstory.targets.tables.drafting import draft
from memstory.targets.tables.mcp import McpTransport
from memstory.targets.tables.reading import parse_table
from memstory.targets.tables.replies import MalformedError, ServerReply, data_of
from memstory.targets.tables.table import ToolTable

if TYPE_CHECKING:
    from memstory.targets.tables.mcp_session import McpSession

_FILE: Final = "the command line"
_SECONDS: Final = 300.0
_WIDTHS: Final = {"--json": 1, "--tool": 3}
"""How many words an option takes with its values, where that is not two."""

_EXAMPLE: Final = '{"query": "tea"}'

_Answer = TypeVar("_Answer")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=["inspect", "call"],
        help="inspect: list the server's tools and draft a table for memstory.toml; call: show what tools reply",
    )
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        nargs=2,
        metavar=("NAME", "JSON"),
        help="for call: a tool and its arguments as a JSON object; can be repeated, one server answers all in order",
    )
    parser.add_argument("--name", default="mine", metavar="NAME", help="name of the target (default: mine)")
    parser.add_argument("--url", metavar="URL", help="a remote server, over streamable HTTP, instead of COMMAND")
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME=VALUE", help="for --url; ${NAME} is a variable's value"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="for COMMAND; {workspace} is a folder"
    )
    parser.add_argument(
        "--seconds",
        type=number_above(0),
        default=_SECONDS,
        help=f"how long it may take to start (default: {_SECONDS:g})",
    )
    add_json(parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server's command; options go before it")


def _run(typed: argparse.Namespace) -> int:
    parser = parser_of("mcp", COMMAND)
    own = _own_words(typed.passed_on)
    chosen = parser.parse_args(typed.passed_on[:own])
    # What begins with a dash after the server's command is the server's own.
    chosen.command = [word for place, word in enumerate(typed.passed_on[own:]) if place or word != "--"]
    if (chosen.what == "call") != bool(chosen.tool):
        raise SetupError("'memstory mcp call' takes the calls to make, --tool NAME JSON; 'inspect' takes none")
    return _call(chosen) if chosen.what == "call" else _inspect(chosen)


def _inspect(chosen: argparse.Namespace) -> int:
    start = _start(chosen)
    found = parse_table(chosen.name, {"type": "mcp", "start_seconds": chosen.seconds, **start}, _FILE)
    about, tools = _with_server(found, _describe)
    drafted = draft(chosen.name, start, tools)
    if chosen.json:
        say_json({"server": dict(about), "tools": [_as_json(tool) for tool in tools], "draft": drafted})
        return OK
    rows = [[tool.name, _arguments(tool), " ".join(tool.description.split())] for tool in tools]
    say_aside(f"{about.get('server', 'the server')}: {quantity(len(tools), 'tool')}\n")
    say_aside(table(["tool", "arguments (* must be given)", "what it does"], rows, [None, 50, 60]))
    say_aside(
        f"\nA draft for memstory.toml; every FILL IN is yours, then: memstory run --bundled --target {chosen.name}\n"
    )
    say(drafted)
    return OK


def _call(chosen: argparse.Namespace) -> int:
    calls = [(name, _object(name, written)) for name, written in chosen.tool]
    found = parse_table(chosen.name, {"type": "mcp", "start_seconds": chosen.seconds, **_start(chosen)}, _FILE)
    replies = [*zip(calls, _with_server(found, partial(_replies, calls)), strict=True)]
    if chosen.json:
        say_json([{"tool": name, "problem": one.problem, "reply": _data_of_reply(one)} for (name, _), one in replies])
    else:
        for (name, args), one in replies:
            say(f"{name} {json.dumps(args, ensure_ascii=False)}")
            say(f"  fails: {one.problem}\n" if one.problem is not None else f"{_pretty(_data_of_reply(one))}\n")
    return OK if all(one.problem is None for _, one in replies) else FINDINGS


def _object(tool: str, written: str) -> Mapping[str, Tree]:
    try:
        args = json.loads(written)
    except ValueError as error:
        raise SetupError(f"--tool {tool}: its arguments are not JSON: {error}; found {written}") from error
    if not isinstance(args, dict):
        raise SetupError(f"--tool {tool}: its arguments are a JSON object such as {_EXAMPLE}, not {written}")
    return args


def _with_server(found: ToolTable, ask: Callable[[McpSession], Awaitable[_Answer]]) -> _Answer:
    async def ask_server(folder: Path) -> _Answer:
        transport = McpTransport(found)
        try:
            await transport.open({"workspace": str(folder), "case": "inspect", "seed": 0}, {})
            return await ask(await transport.any_session())
        finally:
            await transport.close()

    with tempfile.TemporaryDirectory(prefix="memstory-inspect-") as folder:
        return asyncio.run(ask_server(Path(folder)))


async def _describe(session: McpSession) -> tuple[Mapping[str, str], Sequence[ToolSchema]]:
    return session.about(), await session.tools()


async def _replies(calls: Sequence[tuple[str, Mapping[str, Tree]]], session: McpSession) -> Sequence[ServerReply]:
    return [await session.call(name, args) for name, args in calls]


def _data_of_reply(reply: ServerReply) -> Tree:
    """Return what the table's paths go into: the data beside the text, or the text, read as JSON where it is."""
    try:
        return data_of(reply)
    except MalformedError:
        return reply.text


def _pretty(reply: Tree) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply, indent=2, ensure_ascii=False)


def _own_words(typed: Sequence[str]) -> int:
    """Return how many of the words are ours: `inspect` and the options before the server's command."""
    place = 1
    while place < len(typed) and typed[place].startswith("-") and typed[place] != "--":
        place += _WIDTHS.get(typed[place], 1 if typed[place].startswith("--") and "=" in typed[place] else 2)
    return min(place, len(typed))


def _start(chosen: argparse.Namespace) -> dict[str, Tree]:
    if bool(chosen.command) == bool(chosen.url):
        raise SetupError("give either the server's COMMAND or --url URL")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", chosen.name):
        raise SetupError(f"--name {chosen.name!r} is not a valid name for a table: use letters, digits, '-' and '_'")
    if chosen.url:
        headers = _pairs("--header", chosen.header)
        return {"url": chosen.url, **({"headers": headers} if headers else {})}
    env = _pairs("--env", chosen.env)
    return {"command": chosen.command, **({"env": env} if env else {})}


def _pairs(option: str, written: Sequence[str]) -> dict[str, str]:
    for one in written:
        if "=" not in one:
            raise SetupError(f"{option} {one!r} is not NAME=VALUE")
    return {name: value for name, _, value in (one.partition("=") for one in written)}


def _arguments(tool: ToolSchema) -> str:
    required = tool.parameters.get("required", ())
    return ", ".join(f"{name}*" if name in required else name for name in tool.parameters.get("properties") or {})


def _as_json(tool: ToolSchema) -> dict[str, Tree]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


COMMAND = Command(
    about=(
        "Start an MCP server, list its tools with their arguments, and draft a [targets.NAME] table for memstory.toml "
        "that maps them to the operations of a memory. Where names are not enough, the draft has a comment that "
        "says what to fill in; `call` makes the calls that you give and shows the replies, so that you can find out. "
        "The server runs in a temporary folder; files and Python modules that its command names are found where you "
        "are. The draft alone is printed on stdout, so that `> memstory.toml` keeps it."
    ),
    examples="""
examples:
  memstory mcp inspect npx -y @modelcontextprotocol/server-memory
  memstory mcp inspect python server.py > memstory.toml
  memstory mcp inspect --name ours --env DATA={workspace} python server.py
  memstory mcp call --tool read_graph '{}' npx -y @modelcontextprotocol/server-memory
  memstory mcp inspect --url http://127.0.0.1:8000/mcp --header 'Authorization=Bearer ${TOKEN}'
""",
    exit_codes="exit codes: 0 the server answered, 1 a tool that was called fails, 2 it cannot be started or reached",
    options=_options,
    run=_run,
    passes_on=True,
)
