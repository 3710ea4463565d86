"""What docs/how-to/keep-texts-out-of-reports.md tells people to type."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/how-to/keep-texts-out-of-reports.md").read_text("utf-8")


def test_the_page_works_word_by_word(tmp_path):
    (story,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (line,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "private.story.yaml").write_text(story, "utf-8")
    command, *arguments = line.split()
    run = subprocess.run(  # noqa: S603  (the command of our own page)
        [Path(sys.executable).with_name(command), *arguments, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    written = "".join(path.read_text("utf-8") for path in (tmp_path / "out").iterdir())
    assert "[text 1, 22 characters]" in written
    assert "Quimperlune" not in written + run.stdout
