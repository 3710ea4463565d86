"""What a run finds out about the memory of a table beside what it maps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.targets.child_server import free_port

pytest_plugins = ["pytester"]

REST_SERVER = Path(__file__).parent.parent / "targets" / "fake_rest_server.py"
NOBODY_CHOSE = "[pytest]\nmemstory_stories = stories\nasyncio_default_fixture_loop_scope = function\n"
NEEDS_MORE = """
story: scores
title: Hits have scores
steps:
  - add: tea
  - search: tea
    expect: {hits: {scores: {length: 1}}}
---
story: exact
title: A text comes back letter for letter
requires: [add.exact]
steps: [{add: tea}]
"""


@pytest.fixture
def served(project):
    """A project with a table for a REST server that runs, and a story that needs what the table does not promise."""
    project.pytester.makeini(NOBODY_CHOSE)
    port = free_port()
    command = [sys.executable, REST_SERVER, str(port)]
    with subprocess.Popen(command, cwd=project.path) as server:  # noqa: S603  (our own)
        project.port = port
        project.story(NEEDS_MORE)
        yield project
        server.terminate()


TABLE = """
[targets.notes]
type = "http"
url = "http://127.0.0.1:{port}"
{declared}

[targets.notes.add]
path = "/"
body = {{ user = "{{user}}", text = "{{text}}" }}
reply = {{ id = "id" }}

[targets.notes.search]
path = "/"
query = {{ user = "{{user}}", q = "{{query}}", limit = "{{top_k}}" }}
reply = {{ id = "id", text = "text" }}
"""


@pytest.mark.parametrize(
    ("declared", "outcome", "said"),
    [
        ("", "passed", "The table notes: Probed: beside what it maps it has add.exact"),
        ('lacks = ["add.exact"]', "unsupported", "it maps it has nothing"),
        ('capabilities = ["add.source"]', "unsupported", ""),
    ],
)
def test_a_run_finds_out_what_a_table_can_do_beside_what_it_maps(served, declared, outcome, said):
    served.path.joinpath("memstory.toml").write_text(TABLE.format(port=served.port, declared=declared), "utf-8")
    result = served.run()
    document = json.loads((served.path / "reports/latest/results.json").read_text("utf-8"))
    assert {case["story"]: case["outcome"] for case in document["cases"]}["exact"] == outcome
    shown = " ".join(result.stdout.str().split())
    assert said in shown
    assert ("Probed:" in shown) == bool(said)
