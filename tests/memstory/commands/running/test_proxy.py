"""`memstory proxy` as it is typed: a command behind it, and what is wrong said in one line."""

import os
import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("httpx", reason="the extra proxy is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from memstory.cli import main

RULES = "model:\n  - when: {contains: tea}\n    reply: Green.\n"
ASKS = """
import json, os, sys, urllib.request, urllib.error
body = {"model": "m", "messages": [{"role": "user", "content": sys.argv[1]}]}
url, data = os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode()
headers = {"Content-Type": "application/json", **json.loads(os.environ.get("MORE", "{}"))}
request = urllib.request.Request(url, data, headers)
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def test_a_command_behind_it_finds_the_proxy_and_calls_are_counted(script, capfd):
    assert main(["proxy", "--script", script, "--", sys.executable, "-c", ASKS, "tea or coffee?"]) == 0
    shown = capfd.readouterr().out
    assert "Green." in shown
    assert "chat/completions" in shown
    assert "scripted" in shown


def test_a_recording_replays_and_a_miss_is_no_success(script, tmp_path, capfd):
    cassette = str(tmp_path / "run.jsonl")
    wrapped = (
        "import os, sys; from memstory.cli import main;"
        "sys.exit(main(['proxy', '--forward', os.environ['OPENAI_BASE_URL'], *sys.argv[1:]]))"
    )
    words = [sys.executable, "-c", wrapped, "--record", cassette, "--", sys.executable, "-c", ASKS, "tea"]
    assert main(["proxy", "--script", script, "--", *words]) == 0
    assert main(["proxy", "--replay", cassette, "--", sys.executable, "-c", ASKS, "tea"]) == 0
    capfd.readouterr()
    assert main(["proxy", "--replay", cassette, "--", sys.executable, "-c", "pass"]) == 0
    assert main(["proxy", "--replay", cassette, "--", sys.executable, "-c", ASKS, "coffee"]) == 1
    assert "no such request" in capfd.readouterr().err


@pytest.mark.parametrize(("source", "how"), [("--script", "scripted"), ("--forward", "")])
def test_the_command_is_told_that_no_model_answers(script, capfd, source, how):
    shown = "import os; print('how:', os.environ['MEMSTORY_PROXY'])"
    where = script if source == "--script" else "http://127.0.0.1:9/v1"
    assert main(["proxy", source, where, "--", sys.executable, "-c", shown]) == 0
    assert f"how: {how}\n" in capfd.readouterr().out


def test_the_code_of_the_command_is_that_of_the_proxy(script):
    assert main(["proxy", "--script", script, "--", sys.executable, "-c", "raise SystemExit(7)"]) == 7


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--replay", "none.jsonl"], "there is no recording at none.jsonl"),
        (["--script", "none.yaml"], "none.yaml cannot be read as YAML"),
        (["--forward", "box:8080"], "allowed: a URL such as"),
        (["--forward", "http://box", "--key", "NO_SUCH"], "'NO_SUCH', which is not set"),
        (["--forward", "http://box", "--key", "LINE_END", "--record", "new.jsonl"], "the key holds a line end"),
        (["--forward", "http://[box", "--record", "new.jsonl"], "is not the URL of a server"),
        (["--replay", "x", "--record", "y"], "--record goes with --forward"),
        (["--script", "x", "--token", "short"], "--token cannot be this word; allowed: 16 to 128"),
        (["--script", "x", "--token", "a/word/with/slashes"], "--token cannot be this word"),
        (["--script", "x", "--token", ""], "--token cannot be this word"),
        (["--script", "x", "--host-name", "http://box"], "--host-name is 'http://box'; allowed: a name without"),
        (["--script", "x", "--host-name", "box:80"], "--host-name is 'box:80'"),
        (["--script", "x", "--host-name", "*"], "--host-name is '*'"),
        (["--forward", "http://box", "--port", "99999"], "port 99999 cannot be used"),
    ],
)
def test_what_is_wrong_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LINE_END", "sk-real\n")
    assert main(["proxy", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "sk-real" not in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


WORD = "a-word-of-twenty-one-signs"


def test_the_word_and_another_name_can_be_given(script, capfd, monkeypatch):
    shown = f"import os; print('url:', os.environ['OPENAI_BASE_URL']); {ASKS}"
    monkeypatch.setenv("MORE", '{"Host": "box.internal:8089"}')
    named = ["proxy", "--script", script, "--token", WORD, "--host-name", "other", "--host-name", "box.internal"]
    assert main([*named, "--", sys.executable, "-c", shown, "tea"]) == 0
    out = capfd.readouterr().out
    assert re.search(rf"^url: http://127\.0\.0\.1:\d+/{WORD}/v1$", out, re.MULTILINE)
    assert "Green." in out


@pytest.mark.parametrize("more", ['{"Host": "evil.example"}', '{"Origin": "http://evil.example"}'])
def test_what_was_refused_is_said_at_the_end_and_is_no_call(script, capfd, monkeypatch, more):
    monkeypatch.setenv("MORE", more)
    asks = f"{ASKS.rpartition('print')[0]}try: urllib.request.urlopen(request)\nexcept urllib.error.HTTPError: pass"
    assert main(["proxy", "--script", script, "--", sys.executable, "-c", asks, "tea"]) == 0
    shown = capfd.readouterr()
    assert "1 more were refused" in shown.err
    assert "chat/completions" not in shown.out


@pytest.mark.parametrize("text", ["model: []", "a: 1", "model:\n  - when: {contains: tea}"])
def test_a_script_without_rules_says_how_one_is_written(text, tmp_path, capsys):
    path = tmp_path / "model.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["proxy", "--script", str(path)]) == 2
    assert "Write: model:" in capsys.readouterr().err


def test_ctrl_c_ends_it_with_the_table(script):
    words = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main(sys.argv[1:]))"]
    server = subprocess.Popen([*words, "proxy", "--script", script], stdout=subprocess.PIPE, text=True)  # noqa: S603  (our own words)
    assert server.stdout is not None
    url = server.stdout.readline().split()[0]
    asked = subprocess.run(  # noqa: S603  (our own words)
        [sys.executable, "-c", ASKS, "tea"],
        env={**os.environ, "OPENAI_BASE_URL": url},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout == "Green.\n"
    server.send_signal(signal.SIGINT)
    shown, _ = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "scripted" in shown
