import json
import shutil

import pytest

OTHER = """\
story: tea
title: A fact is found
tags: [quick]
steps:
  - add: {text: Ana drinks tea, key: drink}
    save: {drink: id}
  - search: what does Ana eat
    expect: {hits: {first: drink, count: 1}}
"""


@pytest.fixture
def run(terminal):
    def made(folder, target="control:oracle", **kept):
        if kept.get("text"):
            terminal.save(kept.pop("text"))
        elif not (terminal.folder / "a.story.yaml").exists():
            terminal.save()
        terminal.record(target=target, **kept)
        shutil.move(terminal.folder / "out", terminal.folder / folder)

    return made


def test_two_targets_stand_side_by_side(terminal, run):
    run("one")
    run("two", target="control:nothing")
    said = terminal.type("compare", "one", "two/results.json")
    assert said.code == 0
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "tea A fact is found passed failed" in lines
    assert any(line.startswith("tea control:oracle control:nothing a.story.yaml:") for line in lines)
    assert "all shared stories 1 1/1 = 100% 0/1 = 0%" in lines


def test_a_page_and_json_can_be_written(terminal, run):
    run("one")
    run("two", target="control:nothing")
    said = terminal.type("compare", "one", "two", "--output", "page.md", "--json", "--against", "control:nothing")
    assert json.loads(said.out)["flips"][0]["against"] == "control:nothing"
    page = (terminal.folder / "page.md").read_text("utf-8")
    assert page.startswith("# Comparison\n\nStories: 1, of which 1 were")
    assert "| tea | A fact is found | ✅ | ❌ |" in page
    assert (
        terminal.type("compare", "one", "two", "--output", "page.md").out
        == "page.md and page.html: 2 columns, 1 story\n"
    )


def test_the_folder_of_a_page_is_made_and_a_file_in_its_place_is_named(terminal, run):
    run("one")
    run("two", target="control:nothing")
    assert terminal.type("compare", "one", "two", "--output", "pages/new/page.md").code == 0
    assert (terminal.folder / "pages/new/page.html").is_file()
    said = terminal.type("compare", "one", "two", "--output", "a.story.yaml/page.md")
    assert (said.code, said.out) == (2, "")
    assert "a.story.yaml/page.md cannot be written" in said.err


def test_unlike_runs_are_refused_with_what_differs(terminal, run):
    run("one")
    run("two", target="control:nothing", text=OTHER)
    said = terminal.type("compare", "one", "two")
    assert (said.code, said.out) == (2, "")
    assert "these runs cannot be compared" in said.err
    assert "  tea: another text of the story: " in said.err


def test_two_runs_of_one_target_are_told_apart_in_words(terminal, run):
    run("one")
    shutil.copytree(terminal.folder / "one", terminal.folder / "same")
    said = terminal.type("compare", "one", "same", "--diff")
    assert (said.code, said.out) == (0, "no difference, except for times\n")
    results = terminal.folder / "same/results.json"
    results.write_text(results.read_text("utf-8").replace('"outcome":"passed"', '"outcome":"failed"'), "utf-8")
    said = terminal.type("compare", "one", "same", "--diff")
    assert said.code == 1
    assert "tea, outcome:" in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one"], "one target of one run is nothing to compare"),
        (["one", "one"], "one is named twice: leave one of the two out"),
        (["one", "--diff"], "--diff is for two runs of one target, given are one with control:oracle"),
        (["one", "nowhere"], "no file or folder nowhere"),
        (
            ["one", "broken.json"],
            "broken.json is damaged at cases, complete, fingerprint, redacted, summary is missing",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(terminal, run, words, said):
    run("one")
    (terminal.folder / "broken.json").write_text('{"schema": "memstory.results/2"}', "utf-8")
    found = terminal.type("compare", *words)
    assert (found.code, said in found.err) == (2, True), found.err
