import json

import pytest

from memstory.reporting.writing import write_reports
from memstory.results.redaction import redact
from memstory.results.runs import make_fingerprint, make_run
from memstory.results.secret_values import Secrets

LONG = """\
story: diary
title: T
vars: {word: entry}
steps:
  - repeat:
      times: 2
      steps:
        - add: ${word} ${i}
          save: {last: id}
  - search: {query: "${word} 1", top_k: 1}
    expect: {hits: {first: last}}
"""


def judged(terminal, *paths):
    said = terminal.type("rejudge", "out", *paths, "--json")
    return said.code, [(one["case"].partition("[")[0], one["was"], one["now"]) for one in json.loads(said.out)]


def test_unchanged_stories_are_judged_as_before(terminal):
    terminal.save()
    terminal.save(LONG, "b.story.yaml")
    terminal.record("b.story.yaml")
    said = terminal.type("rejudge", "out")
    assert (said.code, said.out) == (0, "1 case judged again: 1 unchanged, 0 changed\n")


def test_a_changed_expectation_flips_the_verdict_and_says_why(terminal):
    path = terminal.save()
    terminal.record()
    path.write_text(path.read_text().replace("count: 1", "count: 2"))
    said = terminal.type("rejudge", "out/results.json")
    assert said.code == 1
    assert "tea[control:oracle]  passed  failed" in said.out
    assert "step 2 (search): hits count 1, expected 2" in " ".join(said.out.split())
    assert said.out.endswith("1 case judged again: 0 unchanged, 1 changed\n")


def test_results_json_is_left_as_it_is(terminal):
    path = terminal.save()
    terminal.record()
    before = (terminal.folder / "out/results.json").read_bytes()
    path.write_text(path.read_text().replace("count: 1", "count: 2"))
    terminal.type("rejudge", "out")
    assert (terminal.folder / "out/results.json").read_bytes() == before


def test_a_changed_title_and_a_kept_verdict_are_told_apart_from_unchanged(terminal):
    path = terminal.save()
    terminal.record()
    path.write_text(path.read_text().replace("A fact is found", "Another title"))
    assert terminal.type("rejudge", "out").out == (
        "1 case judged again: 1 unchanged, 0 changed (1 story edited since, with the same result)\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("word: entry", "word: note", "step 1.1, pass 1 (add) is not what was recorded: run it again"),
        ("times: 2", "times: 3", "step 1 (repeat) is not what was recorded: run it again"),
        ("  - search: {", "  - context: {", "step 2 (context) is not what was recorded: run it again"),
        ("  - search", "  - settle:\n  - search", "2 steps recorded, and the story has 3 now: run it again"),
        ("top_k: 1}", "top_k: 1}\n    as: bo", "step 2 (search) is not what was recorded: run it again"),
        ("top_k: 1}", "top_k: 1}\n    session: s2", "step 2 (search) is not what was recorded: run it again"),
        ("title: T", "title: T\noptions: {k: 1}", "the story's options changed since: run it again"),
        ("story: diary", "story: dairy", "the story diary is in none of the files"),
    ],
)
def test_a_story_that_does_other_things_now_cannot_be_judged(terminal, before, after, reason):
    path = terminal.save(LONG)
    terminal.record()
    changed = LONG.replace(before, after)
    assert changed != LONG
    path.write_text(changed.replace("hits: {first: last}", "text: x") if "context" in after else changed)
    said = terminal.type("rejudge", "out", "--json")
    assert said.code == 1
    (one,) = json.loads(said.out)
    assert (one["was"], one["now"], one["reason"]) == ("passed", "cannot", reason)


@pytest.mark.parametrize(
    ("before", "after", "now", "reason"),
    [
        ("mrr: {ge: 0.6}", "mrr: {gt: 1}", "failed", "mrr"),
        ("k: 3", "k: 4", "cannot", "'k' changed since: run it again"),
        ("k: 3}", "k: 3}\nperturb: {shuffle: true}", "cannot", "the perturbations changed since: run it again"),
    ],
)
def test_a_retrieval_is_judged_by_new_bounds_but_not_for_another_task(terminal, before, after, now, reason):
    terminal.type("new", "corpus", "facts")
    terminal.record("facts.story.yaml")
    path = terminal.folder / "facts.story.yaml"
    path.write_text(path.read_text().replace(before, after))
    (one,) = json.loads(terminal.type("rejudge", "out", "--json").out)
    assert (one["was"], one["now"]) == ("passed", now)
    assert reason in one["reason"]


def test_trials_are_judged_by_the_rule_of_the_run(terminal):
    terminal.save(LONG)
    terminal.record(trials=3)
    assert judged(terminal) == (0, [("diary", "passed", "passed")])


def test_other_story_files_can_be_named(terminal):
    terminal.save()
    terminal.record()
    (terminal.folder / "a.story.yaml").rename(terminal.folder / "moved.story.yaml")
    said = terminal.type("rejudge", "out")
    assert said.code == 2
    assert "the run was about a.story.yaml, which is not here" in said.err
    assert judged(terminal, "moved.story.yaml") == (0, [("tea", "passed", "passed")])


def test_a_story_that_became_invalid_is_told_with_its_error(terminal):
    path = terminal.save()
    terminal.record()
    path.write_text(path.read_text().replace("expect", "exepct"))
    said = terminal.type("rejudge", "out")
    assert said.code == 1
    assert "unknown step 'exepct'" in said.err
    assert "cannot be judged" in said.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"schema": "memstory.recordings/9"}',
            "out/recordings.jsonl:1: the recording has the form 'memstory.recordings/9', this version of memstory",
        ),
        ('{"schema": "memstory.recordings/2", "case": "x"}', "out/recordings.jsonl:1: the recording is not complete"),
        ('{"schema": "memstory', "out/recordings.jsonl:1: this line is damaged"),
        ("[]", "out/recordings.jsonl:1: the recording has the form None"),
        (None, "out/recordings.jsonl is not there: a run writes it beside results.json."),
    ],
)
def test_recordings_that_cannot_be_read_are_one_line_and_2(terminal, text, message):
    terminal.save()
    terminal.record()
    path = terminal.folder / "out/recordings.jsonl"
    path.unlink()
    if text is not None:
        path.write_text(text)
    said = terminal.type("rejudge", "out")
    assert said.code == 2
    assert said.err.startswith(f"memstory rejudge: {message}")
    assert said.err.count("\n") == 1


def test_a_redacted_recording_cannot_be_judged_again_and_says_why(terminal):
    terminal.save("story: secret\ntitle: T\nsteps:\n  - add: My password is hunter2\n", "c.story.yaml")
    safe = [redact(result, "secrets", Secrets()) for result in terminal.record("c.story.yaml")]
    write_reports(terminal.folder / "out", make_run(safe, make_fingerprint(safe)))
    said = terminal.type("rejudge", "out")
    assert said.code == 1
    assert "were redacted from its recording: run it again" in " ".join(said.out.split())
    assert judged(terminal) == (1, [("secret", "passed", "cannot")])


def test_a_run_of_bundled_stories_is_judged_again_from_any_folder(terminal):
    terminal.record("bundled/generic/list.yaml")
    said = terminal.type("rejudge", "out")
    assert (said.code, said.out) == (0, "4 cases judged again: 4 unchanged, 0 changed\n")
