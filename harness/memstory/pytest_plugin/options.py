"""What of pytest's config is ours: options of the command line, settings of the ini file, and the key of our state."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memstory.commands.command import number_above, option_pair, price_pair, whole_number
from memstory.commands.running.option_names import SHORT, spelled_out, values
from memstory.pytest_plugin.shards import CaseTimes, parse_shard
from memstory.results.redaction import DEFAULT_LEVEL, LEVELS, Level

if TYPE_CHECKING:
    from memstory.contract.target import Tree

# Its value is `session.SessionState`, which a plain start of pytest does not import.
SESSION: pytest.StashKey[Any] = pytest.StashKey()
"""In the stash of a config as soon as a story was collected."""

OUTCOME = "memstory_outcome"
"""The property of a report that tells of an outcome that pytest does not know."""

NOT_RUN: pytest.StashKey[dict[str, list[str]]] = pytest.StashKey()
"""In the stash of a config: why stories have no case, with those of which it is said, each `PLACE: 'ID'`."""

ENDED: list[pytest.Session] = []
"""The session that has ended last: its exit code is that of the process."""

TIMES: pytest.StashKey[CaseTimes] = pytest.StashKey()
"""In the stash of a config: what `--shard-by` names."""

NO_TARGET: pytest.StashKey[str] = pytest.StashKey()
"""In the stash of a config: why its stories have no target to run on."""

PROJECTS: pytest.StashKey[list[str]] = pytest.StashKey()
"""In the stash of a config: the options, typed by their short names, that belong to the project and not to us."""

DEFAULT_REPORT = "reports/latest"
DEFAULT_SECONDS = 60.0
MODEL_SECONDS = 600.0
"""A case in which a language model talks, extracts or judges may take longer."""


def add_options(parser: pytest.Parser) -> None:
    """Add all of them under their long names, in their own group."""
    group = parser.getgroup(
        "memstory",
        "stories about the memory of agents (--target for --memstory-target and so on, where these are free)",
    )
    add = group.addoption
    add(
        "--memstory-target",
        action="append",
        metavar="NAME",
        help="memory to test: a name, a group such as 'reference', control:oracle, or module:Class; can be repeated",
    )
    add(
        "--memstory-target-option",
        action="append",
        default=[],
        type=option_pair,
        metavar="NAME=VALUE",
        help="option for the targets that have it, such as top_k=5; VALUE is JSON or plain text; can be repeated",
    )
    add(
        "--memstory-chat",
        metavar="MODEL",
        help="chat model for targets that let you choose one, and for the agent that talks for targets without chat",
    )
    add(
        "--memstory-embedder",
        metavar="MODEL",
        help="embedder for targets that let you choose one",
    )
    add(
        "--memstory-chat-url",
        metavar="URL",
        help="address for 'openai:MODEL', such as http://127.0.0.1:8080/v1 (default: OPENAI_BASE_URL)",
    )
    add(
        "--memstory-chat-key",
        metavar="VARIABLE",
        help="the environment variable with the key for 'openai:MODEL' (default: OPENAI_API_KEY)",
    )
    add(
        "--memstory-judge",
        metavar="MODEL",
        help="chat model that decides whether an answer agrees with the facts in `judged:`; it must pass an exam first",
    )
    add(
        "--memstory-answer",
        metavar="MODEL",
        help="chat model that answers the questions of retrieval stories from what was found; goes with --judge",
    )
    add(
        "--memstory-judge-file",
        metavar="FILE",
        help="file of the judge's replies, which are reused (default: judge.jsonl next to the report's folder)",
    )
    add(
        "--memstory-report",
        metavar="DIR",
        help=f"where results.json and report.md go (default: {DEFAULT_REPORT} under the rootdir)",
    )
    add(
        "--memstory-case-timeout",
        type=number_above(0),
        metavar="SECONDS",
        help=f"how long one case may take (default: {DEFAULT_SECONDS:g}; {MODEL_SECONDS:g} with a language model); "
        "retrieval over real data may take an hour",
    )
    add(
        "--memstory-max-tokens",
        type=whole_number,
        metavar="N",
        help="run no other case once language models have used so many tokens; the cases that are left are 'exhausted'",
    )
    add(
        "--memstory-max-cost",
        type=number_above(0),
        metavar="DOLLARS",
        help="run no other case once they have cost so much, at --price",
    )
    add(
        "--memstory-price",
        type=price_pair,
        metavar="PROMPT/ANSWER",
        help="dollars for a million tokens of prompts and of answers, such as 0.15/0.60",
    )
    add("--memstory-trials", type=whole_number, metavar="N", help="run every case N times")
    add(
        "--memstory-sample",
        type=whole_number,
        metavar="N",
        help="of each retrieval story run N of its histories (conversations), the same in every run",
    )
    add(
        "--memstory-resume",
        action="store_true",
        help="go on with the histories that a killed run in the same report folder had done",
    )
    add(
        "--memstory-quick",
        action="store_true",
        help="leave out the stories that only measure, such as those on large corpora",
    )
    add(
        "--memstory-measure",
        action="store_true",
        help="say of every story which of its expectations held, and let none pass or fail: 'measured'",
    )
    add(
        "--memstory-shard",
        type=parse_shard,
        metavar="I/N|auto",
        help=(
            "run part I of N of the selected stories, or 'auto', which part the variables of a job of GitLab, GitHub,"
            " Slurm, Kubernetes, AWS Batch, CircleCI or Buildkite say; 'memstory merge' combines the reports of all"
        ),
    )
    add(
        "--memstory-shard-by",
        metavar="RUN",
        help=(
            "share cases out by the times of an earlier run, its folder or results.json, so that all shards end at"
            " about the same time; give every shard the same RUN; a case that it does not have counts for its median"
        ),
    )
    add(
        "--memstory-on",
        type=scheduler,
        metavar="dask://HOST:PORT",
        help=(
            "run the stories on the workers of this scheduler of Dask, in batches; each worker needs this version of"
            " memstory, and the project's folder at the same path (a shared filesystem, or one image)"
        ),
    )
    add(
        "--memstory-redact",
        choices=LEVELS,
        help=(
            "what is taken out before anything is written: 'secrets' such as keys and passwords (the default), 'texts',"
            " which is all that was said or remembered, or 'none'; a story may ask for more"
        ),
    )
    add(
        "--memstory-isolate",
        action="store_true",
        help="run every case in its own process",
    )
    add(
        "--memstory-any-path",
        action="store_true",
        help="let stories use files outside their root and their case's folder: recordings, backups, datasets",
    )
    parser.addini("memstory_target", "targets when no --target is given", type="args", default=[])
    parser.addini("memstory_stories", "folders whose YAML files are stories", type="paths", default=[])
    parser.addini("memstory_requirements", "text with the ids that stories may cover", type="string", default="")
    parser.addini("memstory_redact", "what --redact is when it is not given", type="string", default="")
    parser.addini("memstory_report", "folder of the reports when no --report is given", type="string", default="")


def scheduler(text: str) -> str:
    """Return the address of a scheduler as it was typed; anything else ends the command."""
    if not re.fullmatch(r"dask://[^/\s:]+:\d{1,5}|dask://\[[0-9a-fA-F:]+\]:\d{1,5}", text, re.ASCII):
        raise ArgumentTypeError(f"'{text}' is no scheduler: say its host and its port, such as dask://scheduler:8786")
    return text


def read_short_names(parser: pytest.Parser, words: list[str]) -> Sequence[str]:
    """Spell out the short names on the command line that nobody else's option has; return those that are taken."""
    typed = sorted({word.partition("=")[0] for word in words}.intersection(SHORT))
    free = [name for name in typed if _is_free(parser, name)]
    words[:] = spelled_out(words, free)
    return [name for name in typed if name not in free]


def _is_free(parser: pytest.Parser, name: str) -> bool:
    try:
        return name in parser.parse_known_and_unknown_args([name])[1]
    except pytest.UsageError:
        return False  # an option that misses its value is one


def leave_values_out(config: pytest.Config, words: Sequence[str]) -> None:
    """Take the values of short names from the paths by which pytest looks for conftests: it cannot know them yet."""
    paths: list[str] = config.known_args_namespace.file_or_dir
    for value in values(words):
        if value in paths:
            paths.remove(value)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is a worker of xdist."""
    return hasattr(config, "workerinput")


def is_typed(config: pytest.Config) -> bool:
    """Whether the command line speaks of targets or their options."""
    typed = ("memstory_target", "memstory_target_option", "memstory_chat", "memstory_embedder")
    return any(config.getoption(name) for name in typed)


def chosen_options(config: pytest.Config) -> dict[str, Tree]:
    """Return the target options of this run, `--chat` and `--embedder` among them."""
    options = dict(config.getoption("memstory_target_option"))
    for name in ("chat", "embedder"):
        value = config.getoption(f"memstory_{name}")
        if value is not None:
            options[name] = value
    return options


def case_seconds(config: pytest.Config) -> float:
    """Return how long one case may take: what was typed, else longer where a language model takes part."""
    typed: float | None = config.getoption("memstory_case_timeout")
    if typed is not None:
        return typed
    options = chosen_options(config)
    talks = str(options.get("chat", "offline")) != "offline" or bool({"llm", "config"} & {*options})
    return MODEL_SECONDS if talks or config.getoption("memstory_judge") else DEFAULT_SECONDS


def judge_file(config: pytest.Config) -> Path:
    """Return where the judge's replies are kept."""
    typed: str | None = config.getoption("memstory_judge_file")
    return config.invocation_params.dir / typed if typed else report_folder(config).parent / "judge.jsonl"


def point_to_models(config: pytest.Config) -> None:
    """Put the address and the key of OpenAI's protocol where every client of it looks, the workers' too.

    Raises:
        pytest.UsageError: the address is not a URL, or the variable that is to have the key is not set.
    """
    url, key = config.getoption("memstory_chat_url"), config.getoption("memstory_chat_key")
    if url is not None:
        if not url.startswith(("http://", "https://")):
            raise pytest.UsageError(f"--chat-url is {url!r}; allowed: a URL such as http://127.0.0.1:8080/v1")
        os.environ["OPENAI_BASE_URL"] = url
    if key is not None:
        if not os.environ.get(key):
            raise pytest.UsageError(
                f"--chat-key names the variable {key!r:.80}, which is not set. Type: export {key}=…"
            )
        os.environ["OPENAI_API_KEY"] = os.environ[key]


def report_folder(config: pytest.Config) -> Path:
    """Return where the reports go; a relative path starts where the command was typed, that of the ini at the root."""
    typed: str | None = config.getoption("memstory_report")
    if typed:
        return config.invocation_params.dir / typed
    written: str = config.getini("memstory_report")
    return config.rootpath / (written or DEFAULT_REPORT)


def redaction_level(config: pytest.Config) -> Level:
    """Return what is to be taken out of all that is written; UsageError for a word in the ini file that is none."""
    level: Level = config.getoption("memstory_redact") or config.getini("memstory_redact") or DEFAULT_LEVEL
    if level not in LEVELS:
        raise pytest.UsageError(f"memstory_redact is {level!r}; allowed: {', '.join(LEVELS)}")
    return level
