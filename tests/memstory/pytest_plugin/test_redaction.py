"""What a run writes and prints with `--redact`, with `redact:` in a story, and without either."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from urllib.parse import quote

import pytest

pytest_plugins = ["pytester"]

KEY = "sk-" + "proj-a1B2c3D4e5F6g7H8i9J0"

STORY = f"""
story: R1
title: A place is told
steps:
  - add: I live in Quimperlune, and my key is {KEY}
  - search: Quimperlune
    expect: {{hits: {{count: 2}}}}
---
story: R2
title: The backend breaks
steps: [{{say: break}}]
"""


def shown(project, result):
    files = [path for path in (project.path / "reports").rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"results.json", "report.md", "report.html", "recordings.jsonl"}
    texts = [path.read_text("utf-8") for path in files]
    return result.stdout.str() + "".join([*texts, *(packed for text in texts for packed in unpacked(text))])


def unpacked(page):
    """What a page shows on a click, which is deflated in it."""
    for one in re.findall(r'<script type="text/plain" id="d\d+">([^<]*)</script>', page):
        yield zlib.decompress(base64.b64decode(one), -15).decode()


def document(project):
    return json.loads((project.path / "reports/latest/results.json").read_text("utf-8"))


def test_secrets_are_taken_out_of_files_and_of_the_terminal_unless_told_otherwise(project):
    # SEC-12
    project.story(STORY)
    said = shown(project, project.run("-v"))
    assert "Quimperlune" in said
    page = (project.path / "reports/latest/report.html").read_text("utf-8")
    assert any("Quimperlune" in packed for packed in unpacked(page))
    assert KEY not in said
    assert document(project)["redacted"]["secrets"] > 0
    assert KEY in shown(project, project.run("--redact", "none"))
    assert document(project)["redacted"] == {"secrets": 0, "texts": 0}


@pytest.mark.parametrize("ini", [False, True])
def test_on_request_no_text_is_written_or_printed(project, ini):
    project.story(STORY)
    if ini:
        project.pytester.makeini((project.path / "tox.ini").read_text() + "\nmemstory_redact = texts\n")
    result = project.run("-v", *([] if ini else ["--redact", "texts"]))
    said = shown(project, result)
    assert "Quimperlune" not in said
    assert "the backend fell over" not in said
    assert "[text 1, " in said
    assert project.results() == {"R1": "failed", "R2": "error"}
    result.stdout.fnmatch_lines(["*a.yaml:6:*", "Redacted from all that was written: * secrets, * texts."])


def test_a_story_asks_for_itself_and_no_option_takes_that_back(project):
    project.story(STORY.replace("title: A place", "redact: texts\ntitle: A place"))
    said = shown(project, project.run("--redact", "none", "-v"))
    assert "Quimperlune" not in said
    assert "the backend fell over" in said


def test_redaction_changes_no_outcome(project):
    project.story(STORY + "---\n" + STORY.replace("story: R", "story: P").replace("count: 2", "count: 1"))
    outcomes = []
    for level in ("none", "secrets", "texts"):
        project.run("--redact", level)
        outcomes.append(project.results())
    assert outcomes[0] == outcomes[1] == outcomes[2] == {"R1": "failed", "R2": "error", "P1": "passed", "P2": "error"}


def test_an_option_of_a_target_with_a_telling_name_is_shown_nowhere(project):
    toy = project.path / "toy_target.py"
    toy.write_text(toy.read_text().replace("option.k ", "option.k option.api_key "))
    project.story(STORY.replace("break", "plain-but-private"))
    said = shown(project, project.run_apart("--target-option", "api_key=plain-but-private", "-p", "no:cacheprovider"))
    assert "plain-but-private" not in said
    assert document(project)["fingerprint"]["options"] == {"api_key": "[redacted]"}


def test_what_a_target_prints_is_redacted_too(project):
    toy = project.path / "toy_target.py"
    words = 'if text == "break":'
    prints = f"{words}\n            print('Bearer a1b2c3d4e5 for Quimperlune')"
    toy.write_text(toy.read_text().replace(words, prints))
    project.story(STORY)
    said = project.run_apart().stdout.str()
    assert "Bearer [redacted] for Quimperlune" in said
    assert "characters were redacted]" in project.run_apart("--redact", "texts").stdout.str()


def test_a_wrong_word_in_the_ini_file_is_refused(project):
    project.story(STORY)
    project.pytester.makeini((project.path / "tox.ini").read_text() + "\nmemstory_redact = text\n")
    result = project.run()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*memstory_redact is 'text'; allowed: none, secrets, texts*"])


def test_workers_redact_what_they_write(project):
    project.story(STORY)
    said = shown(project, project.run_apart("-n", "2", "--redact", "texts"))
    assert "Quimperlune" not in said
    assert document(project)["redacted"]["texts"] > 0


ENVIRONMENT = {
    "PGPASSWORD": 'tulip/99&"more"', "REDISCLI_AUTH": "zebra-crossing-9", "SECRET_KEY_BASE": "0123456789abcdef" * 2,
    "MY_CREDS": "ann:swordfish-7", "GITLAB_PAT": "walrus_and_9_more", "SLACK_WEBHOOK": "https://hooks.example.org/T0/B0/x9",
    "TF_VAR_pw": "back\\slash and 9", "DB_PASSWORD": "roses-and-lilies",
}  # fmt: skip
SAYS = """
            import base64, json, urllib.parse
            told = []
            for name in NAMES:
                value = os.environ[name]
                told += [value, urllib.parse.quote(value, safe=""), json.dumps(value), json.dumps(json.dumps(value))]
                told += [base64.b64encode(value.encode()).decode(), value.encode().hex()]
            print("printed", *told)
            raise RuntimeError("it refused " + " ".join(told))
"""


def test_secrets_of_the_environment_are_shown_nowhere_however_they_are_written(project, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    toy = project.path / "toy_target.py"
    says = f'        if text == "break":{SAYS}'.replace("NAMES", repr(list(ENVIRONMENT)))
    toy.write_text(toy.read_text().replace('        if text == "break":\n', says, 1))
    project.story(STORY)
    said = shown(
        project, project.run_apart("-v", "--junitxml", "reports/latest/../../junit.xml", "-p", "no:cacheprovider")
    )
    said += (project.path / "junit.xml").read_text("utf-8")
    assert "it refused" in said
    assert "printed" in said
    for value in ENVIRONMENT.values():
        ways = {value, quote(value, safe=""), base64.b64encode(value.encode()).decode(), value.encode().hex()}
        ways |= {json.dumps(value)[1:-1], json.dumps(json.dumps(value)[1:-1])[1:-1]}
        assert [way for way in ways if way in said or html.escape(way) in said] == []
