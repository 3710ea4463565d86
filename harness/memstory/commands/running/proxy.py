"""`memstory proxy`: a language model's server on this machine, recorded, replayed, counted or scripted."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from memstory.commands.command import FINDINGS, OK, Command
from memstory.commands.output import complain, say, table
from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command
from memstory.contract.values import Tree
from memstory.models.openai_server import HOW, KEY, URL

if TYPE_CHECKING:
    from memstory.models.answering import Answerer
    from memstory.models.proxy import Proxy

_SHOWN: Final = 3


def _options(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--forward", metavar="URL", help="forward every call to this server, such as http://box:8080/v1"
    )
    source.add_argument("--replay", type=Path, metavar="FILE", help="answer from a recording, without a server")
    source.add_argument("--script", type=Path, metavar="FILE", help="answer by the rules under `model:` in this file")
    parser.add_argument("--record", type=Path, metavar="FILE", help="with --forward: write the calls to a new file")
    parser.add_argument(
        "--key", metavar="VARIABLE", help="with --forward: the variable with its key (default: what each caller sends)"
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--token", metavar="WORD",
        help="fix the word in the path of the base URL, which is a secret; for a container (default: a random one)",
    )  # fmt: skip
    parser.add_argument(
        "--host-name", action="append", default=[], metavar="NAME",
        help="answer under this name of the machine too, such as host.docker.internal (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND",
        help="behind --: run it with OPENAI_BASE_URL set, and end when it ends (default: serve until Ctrl-C)",
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    if chosen.record is not None and chosen.forward is None:
        raise SetupError("--record goes with --forward: there is nothing to record otherwise.")
    if chosen.token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,128}", chosen.token):
        raise SetupError("--token cannot be this word; allowed: 16 to 128 letters, digits, - and _")
    for name in chosen.host_name:
        if not re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", name):
            raise SetupError(f"--host-name is {name!r}; allowed: a name without a port, such as host.docker.internal")
    try:
        from memstory.models.proxy import Proxy, totals  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise SetupError(f"the proxy needs '{error.name}'. Install it with: {install_command('proxy')}") from error
    with Proxy(_answering(chosen), chosen.port, token=chosen.token, host_names=chosen.host_name) as proxy:
        # Readers of a report must see that no model answered.
        how = "replayed" if chosen.replay else "scripted" if chosen.script else ""
        code = _carried_out(chosen.command, proxy, how)
    if proxy.calls:
        heads = ["path", "model", "answer", "calls", "prompt tokens", "answer tokens", "seconds"]
        rows = [["" if cell is None else str(cell) for cell in row] for row in totals(proxy.calls)]
        say(table(heads, rows, [None] * len(heads)))
    for one in proxy.failures[:_SHOWN]:
        complain(one)
    if len(proxy.failures) > _SHOWN:
        complain(f"… {len(proxy.failures) - _SHOWN} more calls failed")
    if proxy.refused:
        complain(f"{proxy.refused} more were refused: from a page, by a foreign name, or without the word in the path")
    return code or (FINDINGS if proxy.failures else OK)


def _carried_out(command: Sequence[str], proxy: Proxy, how: str) -> int:
    if not command:
        say(f"{proxy.url} answers; in another terminal: export {URL}={proxy.url} {KEY}=none. Ctrl-C ends it.")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            signal.sigwait({signal.SIGINT, signal.SIGTERM})
        return OK
    environ = {**os.environ, URL: proxy.url, HOW: how}
    environ.setdefault(KEY, "none")
    try:
        return subprocess.run(command, env=environ, check=False).returncode  # noqa: S603  (what the user typed)
    except OSError as error:
        raise SetupError(f"{command[0]!r} cannot be started: {error.strerror}.") from error


def _answering(chosen: argparse.Namespace) -> Answerer:
    from memstory.models.answering import Forwarder, Replayer, RuleAnswerer  # noqa: PLC0415  (an extra)
    from memstory.models.proxy_recording import Recorder, read_calls  # noqa: PLC0415
    from memstory.results.secret_values import Secrets, known_secrets  # noqa: PLC0415

    if chosen.replay is not None:
        return Replayer(read_calls(chosen.replay))
    if chosen.script is not None:
        return RuleAnswerer(_rules(chosen.script))
    key = os.environ.get(chosen.key) if chosen.key else None
    if chosen.key and not key:
        raise SetupError(f"--key names the variable {chosen.key!r}, which is not set. Type: export {chosen.key}=…")
    forwarding = Forwarder(chosen.forward, key)
    # After the check of URL and key: a mistake there leaves no file.
    if chosen.record is not None:
        forwarding.recorder = Recorder(chosen.record, Secrets(known_secrets({}, os.environ)))
    return forwarding


def _rules(path: Path) -> Sequence[Mapping[str, Tree]]:
    try:
        documents = [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if isinstance(one, dict)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SetupError(f"{path} cannot be read as YAML: {' '.join(str(error).split())}") from error
    rules = [rule for one in documents for rule in one.get("model") or ()]
    wrong = [number for number, rule in enumerate(rules, 1) if not isinstance(rule, dict) or "reply" not in rule]
    if wrong or not rules:
        what = f"rule {wrong[0]} has no `reply`" if wrong else "there are no rules under `model:`"
        raise SetupError(f"{path}: {what}. Write: model: [{{when: {{contains: TEXT}}, reply: TEXT}}]")
    return rules


COMMAND: Final = Command(
    about=(
        "Sits between a memory and its language model, on 127.0.0.1. It can test any memory that accepts a base URL "
        "for OpenAI's protocol, without a key and repeatably: record once with a real model and replay from then on, "
        "or answer by "
        "rules.\n\nRequests are compared without ids, dates and times; ids in recorded answers are replaced by "
        "those of the new request. Keys are never written.\n\nOnly who has the whole base URL, with the random word in "
        "its path, is answered; web pages never are."
    ),
    examples="""\
  memstory proxy --forward https://example.org/v1 --key KEY --record run.jsonl -- memstory run stories --chat openai:M
  memstory proxy --replay run.jsonl -- memstory run stories --chat openai:M
  memstory proxy --script model.yaml --port 8089 --token WORD --host-name host.docker.internal""",
    exit_codes=f"exit codes: {OK} fine, {FINDINGS} a call failed or was not in the recording, else that of COMMAND",
    options=_options,
    run=_run,
)
