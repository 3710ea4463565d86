"""What is published, as a stranger meets it: the pages of the index, and the wheel alone in a bare environment.

`nox -s dist` builds into build/dist and runs this.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import tomllib
import zipfile
from email.parser import Parser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import check_jsonschema
import pytest
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
DIST = ROOT / "build/dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))

STORY = """\
story: tea
title: After a correction only the new text is found
harm: wrong
steps:
  - add: Ana drinks her tea with sugar.
    save: {tea: id}
  - update: {id: "${tea}", text: Ana drinks her tea with lemon.}
  - search: how does Ana drink her tea
    expect: {hits: {count: 1, text: {contains: lemon}}}
---
story: door
title: Ben finds nothing of Ana
harm: leak
steps:
  - add: My door code is 4711.
    as: ana
  - search: what is my door code
    as: ben
    expect: {hits: {count: 0}}
---
story: boat
title: A fact is found after a restart
harm: loss
steps:
  - add: The boat lies at the third pier.
    save: {boat: id}
  - restart:
  - search: where does the boat lie
    expect: {hits: {first: boat}}
"""


def only(pattern):
    (found,) = DIST.glob(pattern)
    return found


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


# --- the pages of the index


def test_every_link_of_the_page_leads_into_the_tree_at_the_tag_of_the_version_or_elsewhere():
    source, tag = PROJECT["urls"]["Source"], f"v{PROJECT['version']}"
    page = metadata(only("memstory-*.whl")).get_payload()
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    own = [link for link in links if link.startswith(f"{source}/")]
    assert len(own) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    shape = re.compile(rf"{re.escape(source)}/(blob|raw)/{re.escape(tag)}/([^#]+)")
    places = {link: shape.fullmatch(link.split("#")[0]) for link in own}
    assert [link for link, place in places.items() if not place or not (ROOT / place[2]).exists()] == []
    assert all(shape.match(link)[1] == "raw" for link in own if link.endswith(".png"))


def test_the_sdist_has_the_same_page_as_the_wheel():
    with tarfile.open(only("memstory-*.tar.gz")) as archive:
        (name,) = [name for name in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name)]
        from_sdist = Parser().parsestr(archive.extractfile(name).read().decode())
    assert from_sdist.get_payload() == metadata(only("memstory-*.whl")).get_payload()


def test_the_alias_brings_memstory_of_its_own_version_and_no_file():
    wheel = only("pytest_memstory-*.whl")
    about = metadata(wheel)
    assert about.get_all("Requires-Dist") == [f"memstory=={PROJECT['version']}"]
    assert about["Version"] == PROJECT["version"]
    assert [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name] == []


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-actions", "action.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_what_github_reads_is_of_the_form_that_it_reads(schema, files):
    found = sorted(map(str, ROOT.glob(files)))
    assert found
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", f"vendor.{schema}", *found])
    assert done.exit_code == 0, done.output


# --- the wheel in a bare environment


def run(*words, cwd=None, env=None):
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=240, check=False)  # noqa: S603


class Newcomer:
    """Somebody with a folder, a bare environment with the wheel in it, and GitHub's variables."""

    def __init__(self, folder, binaries, address):
        self.folder, self.address, self.outputs = folder, address, {}
        self.env = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
        self.inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}

    def type(self, *words):
        done = run(*words, cwd=self.folder, env=self.env)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def steps(self, *names, **inputs):
        """Run the named steps of the action; stop at the first that fails, as a runner does, and return its result."""
        given = {**self.inputs, "token": "t0ken", **{name.replace("_", "-"): one for name, one in inputs.items()}}
        github = {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": self.address,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_REPOSITORY": "me/it",
            "GITHUB_RUN_ID": "7",
            "GITHUB_SERVER_URL": "https://git.example",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
        }

        def value(match):
            kind, name = match[1].split(".", 1)
            return given[name] if kind == "inputs" else self.outputs.get(tuple(name.split(".outputs.")), "")

        done = None
        for step in ACTION["runs"]["steps"]:
            if step["id"] not in names or (step["id"] == "gate" and not given["baseline"]):
                continue
            output = self.folder / "output"
            output.write_text("", "utf-8")
            own = {name: re.sub(r"\$\{\{ (\S+) \}\}", value, text) for name, text in step["env"].items()}
            env = {**self.env, **github, **own, "GITHUB_OUTPUT": str(output)}
            done = run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"], cwd=self.folder, env=env)
            for line in output.read_text("utf-8").splitlines():
                name, _, text = line.partition("=")
                self.outputs[step["id"], name] = text
            if done.returncode:
                break
        return done


class Forge(BaseHTTPRequestHandler):
    """The comments of one pull request, as GitHub's API gives and takes them."""

    def do_GET(self):
        found = re.fullmatch(r"/repos/me/it/issues/12/comments\?per_page=(\d+)&page=(\d+)", self.path)
        size, page = map(int, found.groups())
        self._answer(200, self.server.comments[size * (page - 1) : size * page])

    def do_POST(self):
        self._write({"id": len(self.server.comments), "user": {"type": "Bot"}}, "/repos/me/it/issues/12/comments")

    def do_PATCH(self):
        number = int(self.path.rsplit("/", 1)[1])
        self._write(self.server.comments[number], f"/repos/me/it/issues/comments/{number}")

    def _write(self, comment, path):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.is_read_only or self.headers["Authorization"] != "Bearer t0ken" or self.path != path:
            self._answer(403, {})
            return
        comment["body"] = body["body"]
        self.server.comments[comment["id"] :] = [comment, *self.server.comments[comment["id"] + 1 :]]
        self._answer(200, comment)

    def _answer(self, status, tree):
        data = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def forge():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Forge)
    server.comments, server.is_read_only = [], False
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def binaries(tmp_path_factory):
    """A bare environment, into which the action's own step has installed the wheel."""
    folder = tmp_path_factory.mktemp("bare")
    assert run(sys.executable, "-m", "venv", str(folder / "venv")).returncode == 0
    newcomer = Newcomer(folder, folder / "venv/bin", "")
    newcomer.env |= {name: one for name, one in os.environ.items() if name.startswith("PIP_")}
    # Python compiles what is used; pip would compile everything.
    own = {"HOME": os.environ["HOME"], "PIP_COMPILE": "0", "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    newcomer.env |= own
    done = newcomer.steps("install", install=str(only("memstory-*.whl")))
    assert done.returncode == 0, done.stderr
    return folder / "venv/bin"


@pytest.fixture
def newcomer(tmp_path, binaries, forge):
    (tmp_path / "mine.story.yaml").write_text(STORY, "utf-8")
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 12}}), "utf-8")
    return Newcomer(tmp_path, binaries, f"http://127.0.0.1:{forge.server_port}")


@pytest.fixture(scope="module")
def reported(tmp_path_factory, binaries):
    """The report of a memory that leaks."""
    folder = tmp_path_factory.mktemp("reported")
    (folder / "mine.story.yaml").write_text(STORY, "utf-8")
    done = Newcomer(folder, binaries, "").steps("run", target="control:leaky", arguments="")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "memory-report"


def test_the_demo_finds_a_leak(newcomer):
    done = newcomer.type("memstory", "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads((newcomer.folder / "memstory-demo/report/results.json").read_text("utf-8"))
    failed = {case["target"] for case in run["cases"] if case["outcome"] == "failed"}
    assert "control:leaky" in failed
    assert "control:oracle" not in failed


def test_a_story_of_ones_own_is_green_on_a_sound_memory_and_red_on_a_faulty_one_and_has_a_badge(newcomer):
    assert newcomer.type("memstory", "run", "--target", "fts5").returncode == 0
    badge = json.loads(newcomer.type("memstory", "badge", "reports/latest").stdout)
    assert (badge["message"], badge["color"]) == ("leaks 0, losses 0", "brightgreen")
    assert newcomer.type("memstory", "run", "--target", "control:leaky").returncode == 1
    badge = json.loads(newcomer.type("memstory", "badge", "reports/latest").stdout)
    assert (badge["message"], badge["color"]) == ("leaks 1, losses 0", "red")


def test_the_hook_for_pre_commit_stops_a_story_with_a_mistake_and_sees_no_other_file(newcomer):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    words = hook["entry"].split()
    assert newcomer.type(*words, "mine.story.yaml").returncode == 0
    (newcomer.folder / "wrong.story.yml").write_text("story: a\ntitle: b\nsteps: [{ad: c}]\n", "utf-8")
    done = newcomer.type(*words, "mine.story.yaml", "wrong.story.yml")
    assert done.returncode == 1
    assert "wrong.story.yml:3:" in done.stdout
    taken = [
        name for name in ("a/b.story.yaml", "c.story.yml", "d.yaml", "story.yaml.md") if re.search(hook["files"], name)
    ]
    assert taken == ["a/b.story.yaml", "c.story.yml"]


AFTER_INSTALLATION = ("run", "gate", "say", "verdict")


def test_the_action_passes_a_sound_memory_and_updates_its_one_comment(newcomer, forge):
    forge.comments += [{"id": number, "body": "hello", "user": {"type": "User"}} for number in range(100)]
    done = newcomer.steps(*AFTER_INSTALLATION, target="fts5", arguments="mine.story.yaml --isolate")
    assert done.returncode == 0, done.stdout + done.stderr
    assert newcomer.steps("say").returncode == 0
    (ours,) = [one["body"] for one in forge.comments if one["user"]["type"] == "Bot"]
    assert ours.startswith("<!-- memstory: memory -->\n### memstory: 3 passed\n")
    assert "| `fts5` | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in ours
    assert "https://git.example/me/it/actions/runs/7" in ours
    summary = (newcomer.folder / "summary.md").read_text("utf-8")
    assert summary.count("### memstory: 3 passed") == 2


def test_the_action_without_a_baseline_fails_where_a_story_fails(newcomer, forge):
    done = newcomer.steps(*AFTER_INSTALLATION, target="control:leaky", arguments="")
    assert done.returncode == 1
    assert "| `control:leaky` | 2 | 1 | 0 | 0 | 0 | 0 | 1 | 0 |" in forge.comments[0]["body"]


def test_the_action_with_a_baseline_fails_for_a_regression_alone(newcomer, forge, reported):
    shutil.copytree(reported, newcomer.folder / "old")
    newcomer.type("memstory", "gate", "old", "--baseline", "base.json.gz", "--update")
    done = newcomer.steps(*AFTER_INSTALLATION, target="control:leaky", arguments="", baseline="base.json.gz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert forge.comments[0]["body"].splitlines()[1].startswith("### memstory: passed")

    newcomer.type("memstory", "run", "--target", "fts5", "--report", "old")
    (newcomer.folder / "base.json.gz").unlink()
    newcomer.type("memstory", "gate", "old", "--baseline", "base.json.gz", "--update")
    done = newcomer.steps(*AFTER_INSTALLATION, target="control:leaky", arguments="", baseline="base.json.gz")
    # Another target than the baseline's: nothing can be compared, which is no pass.
    assert done.returncode == 2
    assert forge.comments[0]["body"].splitlines()[1].startswith("### memstory: could not be measured")
    assert len(forge.comments) == 1


def test_the_action_stops_at_a_wrong_command(newcomer, forge):
    done = newcomer.steps(*AFTER_INSTALLATION, target="no-such-memory", arguments="")
    assert done.returncode == 4
    assert "no-such-memory" in done.stdout + done.stderr
    assert forge.comments == []


def test_the_action_goes_on_without_a_comment_where_it_may_not_write_one(newcomer, forge, reported):
    forge.is_read_only = True
    done = newcomer.steps("say", report=str(reported))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "::warning::" in done.stdout


def test_the_action_writes_no_comment_outside_of_a_pull_request(newcomer, forge, reported):
    (newcomer.folder / "event.json").write_text("{}", "utf-8")
    done = newcomer.steps("say", report=str(reported))
    assert done.returncode == 0, done.stdout + done.stderr
    assert forge.comments == []
    assert (newcomer.folder / "summary.md").exists()


def test_what_a_memory_answers_stays_text_in_the_comment(newcomer, forge, reported):
    folder = shutil.copytree(reported, newcomer.folder / "memory-report")
    (folder / "gate.txt").write_text("regression: ```` @everyone <b>\ngate: regression (3 cases)\n", "utf-8")
    assert newcomer.steps("say").returncode == 0
    lines = forge.comments[0]["body"].splitlines()
    place = lines.index("regression: ```` @everyone <b>")
    assert (lines[place - 1], lines[place + 1]) == ("`" * 7, "`" * 7)
