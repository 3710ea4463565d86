"""What the action says of a run: in the summary of the job, and in one comment of the pull request that it updates."""  # noqa: INP001

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

OUTCOMES = ("passed", "failed", "measured", "unsupported", "error", "invalid")
LONGEST_COMMENT = 60_000
LONGEST_SUMMARY = 1_000_000
A_PAGE = 100
READ_ONLY = 403


def main(environment: Mapping[str, str]) -> None:
    """Write the summary, and the comment where there is a pull request."""
    folder, name = Path(environment["REPORT"]), environment["NAME"]
    if not (folder / "results.json").exists():
        sys.exit(f"memstory: the run left no results in {folder}; its own messages above say why")
    words = comment(name, folder, where_it_ran(environment))
    with Path(environment["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
        summary.write(f"{words}\n\n{cut((folder / 'report.md').read_text('utf-8'), LONGEST_SUMMARY - len(words))}\n")
    number = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text("utf-8")).get("pull_request", {}).get("number")
    if environment["COMMENT"] != "true" or number is None:
        sys.stdout.write("No comment: this is no pull request, or none is wanted.\n")
        return
    place = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}/issues"
    try:
        upsert(place, number, marker(name), words, environment["TOKEN"])
    except HTTPError as error:
        if error.code != READ_ONLY:
            raise
        # A pull request from a fork has a token that may only read; the summary has the same words.
        sys.stdout.write(
            "::warning::memstory may not comment here: the job needs 'permissions: pull-requests: write'\n"
        )


def marker(name: str) -> str:
    """Return the first line of a comment, which nobody sees and by which it is found again."""
    return f"<!-- memstory: {re.sub(r'[^A-Za-z0-9._ -]', '_', name)} -->"


def where_it_ran(environment: Mapping[str, str]) -> str:
    """Return the address of the workflow's run."""
    return "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(environment)


def comment(name: str, folder: Path, address: str) -> str:
    """Return what is said of the run in `folder`: a table of outcomes by target, then what the gate found."""
    run = json.loads((folder / "results.json").read_text("utf-8"))
    gate = folder / "gate.txt"
    said = gate.read_text("utf-8").strip().splitlines() if gate.exists() else []
    head = [marker(name), f"### memstory: {said[-1].removeprefix('gate: ') if said else verdict(run)}", ""]
    foot = ["", f"[The run]({address}) has the whole report in its summary."]
    found = cut("\n".join(said[:-1]), LONGEST_COMMENT)
    # A fence longer than any within: what a memory answered stays text, and calls nobody by name.
    fence = "`" * (max(map(len, re.findall("`+", found)), default=0) + 3)
    return "\n".join([*head, *table(run["cases"]), *(["", fence, found, fence] if found else []), *foot])


def verdict(run: Mapping[str, Any]) -> str:
    """Return what a run without a baseline comes to."""
    counts = {name: number for name, number in run["summary"].items() if number}
    said = ", ".join(f"{number} {name}" for name, number in counts.items()) or "no story ran"
    return said if run["complete"] else f"{said}; the run was cut short"


def table(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table: for each target its outcomes, and how many of the failed leak or lose."""
    yield f"| target | {' | '.join(OUTCOMES)} | leaks | losses |"
    yield "|---" * (len(OUTCOMES) + 3) + "|"
    for target in sorted({case["target"] for case in cases}):
        own = [case for case in cases if case["target"] == target]
        outcomes = Counter(case["outcome"] for case in own)
        harms = Counter(case.get("harm") for case in own if case["outcome"] == "failed")
        numbers = [*map(outcomes.__getitem__, OUTCOMES), harms["leak"], harms["loss"]]
        yield f"| `{re.sub('[`|]', '_', target)}` | {' | '.join(map(str, numbers))} |"


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters, which says so where it is not whole."""
    note = "\n… cut here; the report has the rest"
    return text if len(text) <= longest else text[: longest - len(note)] + note


def upsert(place: str, number: int, mark: str, words: str, token: str) -> None:
    """Write the comment, or write it anew where it stands; only a comment of a bot is ours."""
    ours = [one for one in comments(place, number, token) if one["body"].startswith(mark)]
    if ours:
        call("PATCH", f"{place}/comments/{ours[0]['id']}", token, {"body": words})
    else:
        call("POST", f"{place}/{number}/comments", token, {"body": words})


def comments(place: str, number: int, token: str) -> Iterator[Mapping[str, Any]]:
    """Yield the comments of bots, page by page."""
    page, full = 1, True
    while full:
        found = call("GET", f"{place}/{number}/comments?per_page={A_PAGE}&page={page}", token)
        yield from (one for one in found if one["user"]["type"] == "Bot")
        page, full = page + 1, len(found) == A_PAGE


def call(method: str, address: str, token: str, body: Mapping[str, str] | None = None) -> Any:
    """Return the answer of GitHub's API."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    request = Request(address, data, headers, method=method)  # noqa: S310  (the runner says where its API is)
    with urlopen(request, timeout=30) as answer:  # noqa: S310  (the same)
        return json.load(answer)


if __name__ == "__main__":
    main(os.environ)
