"""`memstory-reference`: the memory systems at the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from memstory_reference.commands import mcp, models, observations, serve
from memstory_reference.commands.chat import chat_command as chat
from memstory_reference.commands.memory import memory_command as memory
from memstory_reference.errors import MemorySystemError

COMMANDS = (chat, memory, serve, observations, mcp, models)
"""Each has `add(subparsers)`, which sets `run`: parsed arguments to exit code. Heavy imports wait until `run`."""

FAILED = 1
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code. What went wrong is one line on stderr."""
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    try:
        code = parsed.run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output, such as `head`, has enough. What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemorySystemError, OSError) as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return int(code)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="memstory-reference", description="Memory systems for agents, on this machine."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(subparsers)
    return parser
