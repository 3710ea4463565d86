# noqa: INP001  (a script, no package)
"""Write the tables of reports/baseline/faults.md and upstream.md from faults.yaml: `python docs/make_faults.py`.

With `run`, show each bug again by its own script, without memstory, and compare what it prints with what it says. With
`draw SEED`, draw 25 of the failed cases, each with what failed and the cause that it is counted under, to be judged.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

BASELINE = Path(__file__).parents[1] / "reports/baseline"
SCRIPTS = BASELINE / "faults"
HARMS = ("leak", "loss", "wrong", "rank", "cosmetic")
PARTS = {
    "bug": "Bugs: a maintainer would mend them",
    "danger": "Dangerous by design: documented, and right to fail",
    "limit": "Limits: no harm, but good to know",
}
_TABLE = re.compile(r"(?<=<!-- faults -->\n).*?(?=<!-- /faults -->)", re.DOTALL)
_SECONDS = 300
# Where Python's own sqlite3 loads no extensions, pysqlite3 does.
_START = """
import runpy, sqlite3, sys
if not hasattr(sqlite3.Connection, "enable_load_extension"):
    import pysqlite3
    sys.modules["sqlite3"] = pysqlite3
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def faults() -> Sequence[Mapping[str, Any]]:
    """Return what faults.yaml says: bugs, dangers, limits; of each the worst harm first."""
    found = yaml.safe_load((BASELINE / "faults.yaml").read_text("utf-8"))
    return sorted(found, key=lambda one: ([*PARTS].index(one["part"]), HARMS.index(one["harm"])))


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of markdown for each part."""
    parts = []
    for part, title in PARTS.items():
        rows = [one for one in found if one["part"] == part]
        lines = [
            f"## {title} ({len(rows)})",
            "",
            "| harm | what goes wrong | backend | stories | why | shown by |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {one['harm'] if part != 'limit' else ''} | {one['what']} | {one['backend']} | {_stories(one)} | "
            f"{_why(one)} | {_shown(one)} |"
            for one in rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _stories(fault: Mapping[str, Any]) -> str:
    return ", ".join(dict.fromkeys(case.partition("[")[0] for case in fault["cases"])) or "none yet"


def _why(fault: Mapping[str, Any]) -> str:
    known = f"known as {fault['upstream']}" if "upstream" in fault else ""
    unknown = "[not reported](upstream.md)" if fault["part"] == "bug" and not known else ""
    return "; ".join(filter(None, [fault["why"], known, unknown]))


def _shown(fault: Mapping[str, Any]) -> str:
    if "script" in fault:
        return f"[{fault['script']}](faults/{fault['script']}.py)"
    return "by hand, below" if "by_hand" in fault else ""


def with_table(page: str) -> str:
    """Return the page with the tables that faults.yaml gives."""
    return _TABLE.sub(lambda _: table(faults()), page)


def said_of(script: str, word: str) -> str:
    """Return what the script `NAME` says behind `# expected:` or `# seen:`."""
    text = (SCRIPTS / f"{script}.py").read_text("utf-8")
    (found,) = re.findall(rf"^# {word}: (.+)$", text, re.MULTILINE)
    return str(found)


def upstream() -> str:
    """Return a report for each bug that nobody has reported, ready to be filed."""
    parts = ["# Ready to report\n\nBugs of [faults.md](faults.md) that no report describes; by `docs/make_faults.py`."]
    for fault in faults():
        if fault["part"] != "bug" or "upstream" in fault:
            continue
        text = (SCRIPTS / f"{fault['script']}.py").read_text("utf-8").partition("# expected:")[0].strip()
        what = fault["what"]
        parts.append(
            f"## {fault['backend']}: {what}\n\n**Versions.** {fault['backend']}; CPython 3.11, Linux.\n\n"
            f"**What happens.** {what[0].upper()}{what[1:]}. As far as we see: {fault['why']}.\n\n"
            f"```python\n{text}\n```\n\n"
            f"**Expected** `{said_of(fault['script'], 'expected')}`, **seen** `{said_of(fault['script'], 'seen')}`."
        )
    return "\n\n".join(parts) + "\n"


def run() -> int:
    """Run the script of each bug; return how many do not show what they say."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (where memstory is installed, which tables do without)

    (offered,) = entry_points(group="memstory.postgres")
    wrong = 0
    with TemporaryDirectory() as folder:
        server = offered.load()(Path(folder))
        env = {**os.environ, "POSTGRES_URL": os.environ.get("POSTGRES_URL") or server.start()}
        try:
            for fault in (one for one in faults() if "script" in one):
                wrong += not _shows(fault, env)
        finally:
            server.halt()
    return wrong


def _shows(fault: Mapping[str, Any], env: Mapping[str, str]) -> bool:
    name = fault["script"]
    if not fault.get("runs", True):
        sys.stdout.write(f"not run  {name}: it needs more than Python and npm\n")
        return True
    command = [sys.executable, "-c", _START, str(SCRIPTS / f"{name}.py")]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603  (our own)
        printed, more = " ".join(done.stdout.split()), done.stderr
    except subprocess.TimeoutExpired:
        printed, more = "", f"it took more than {_SECONDS} s"
    is_shown = printed == said_of(name, "seen")
    last = (more.strip().splitlines() or [""])[-1]
    sys.stdout.write(f"shown    {name}\n" if is_shown else f"NOT SHOWN {name}: it printed {printed!r}. {last}\n")
    return is_shown


def draw(seed: int) -> Sequence[Sequence[str]]:
    """Return 25 failed cases of the published run: what failed, how many cases are the same cause, and their first."""
    from memstory.reporting.sections.columns import columns_of  # noqa: PLC0415  (tables are made without memstory)
    from memstory.reporting.sections.outcomes import causes  # noqa: PLC0415  (the same)
    from memstory.results.folder.results_file import read_results  # noqa: PLC0415  (the same)
    from memstory.results.runs import NamedRun  # noqa: PLC0415  (the same)

    published = NamedRun(name="backends", run=read_results(BASELINE / "backends.json.gz"))
    rows = {
        case.id: [case.id, f"{case.title}: {case.reason}".replace("\n", " "), str(len(cause.cases)), cause.cases[0].id]
        for cause in causes(columns_of([published]))
        for case in cause.cases
    }
    return [rows[name] for name in sorted(Random(seed).sample(sorted(rows), 25))]  # noqa: S311  (no secret)


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        sys.exit(bool(run()))
    if sys.argv[1:2] == ["draw"]:
        for row in draw(int(sys.argv[2])):
            sys.stdout.write(" | ".join(row) + "\n")
        sys.exit()
    written = BASELINE / "faults.md"
    written.write_text(with_table(written.read_text("utf-8")), "utf-8")
    (BASELINE / "upstream.md").write_text(upstream(), "utf-8")
