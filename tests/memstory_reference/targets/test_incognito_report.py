"""An incognito session whose story says `redact: texts`, run by pytest in its own process (C-18, SEC-10)."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[3]
STORIES = ROOT / "stories/layers/modes_audit.yaml"
SAID = ("Quimperlune", "Ottoline", "pilot", "Where do I live")


def run(folder, *options):
    command = [sys.executable, "-m", "pytest", f"{STORIES}::C15c[layers]", "--target", "layers", "-v"]
    command += ["--report", str(folder), "-p", "no:cacheprovider", *options]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    assert said.returncode == 0, said.stdout
    return said.stdout + said.stderr


def test_no_word_of_an_incognito_session_is_in_its_report(tmp_path):
    printed = run(tmp_path, "--redact", "none")  # the story's own wish holds
    files = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert files.keys() == {"results.json", "report.md", "report.html", "recordings.jsonl"}
    packed = re.findall(r'<script type="text/plain" id="d\d+">([^<]*)</script>', files["report.html"])
    on_click = [zlib.decompress(base64.b64decode(one), -15).decode() for one in packed]
    assert len(on_click) == 1
    for text in (printed, *files.values(), *on_click):
        assert [word for word in SAID if word in text] == []
    (case,) = json.loads(files["results.json"])["cases"]
    assert case["outcome"] == "passed"
    assert case["redacted"]["texts"] > 0
    recorded = json.loads(files["recordings.jsonl"])
    assert recorded["steps"][0]["args"] == {"text": "[text 1, 60 characters]"}
