import subprocess
import sys
from pathlib import Path

import memstory
from memstory.language.stories import load_stories
from memstory.language.story import Story


def test_the_demo_shows_a_leak_and_leaves_a_page(tmp_path):
    start = "import sys; from memstory.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "demo", "--folder", "d"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "14 passed, 1 failed" in run.stdout
    assert "FAILED d/demo.story.yaml::demo2[control:leaky]" in run.stdout
    assert (tmp_path / "d/report/report.html").as_uri() in run.stdout
    assert (tmp_path / "d/report/report.html").exists()


def test_the_stories_of_the_demo_have_names_and_harms_and_need_no_model():
    path = Path(memstory.__file__).parent / "templates/demo.story.yaml"
    stories = load_stories(path)
    assert all(isinstance(story, Story) and story.slug and story.harm for story in stories)
    assert not {need for story in stories for need in story.needs} & {"chat", "llm.scripted"}
