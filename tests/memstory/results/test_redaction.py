from dataclasses import replace

import pytest

from memstory.contract.codec import encode
from memstory.contract.target import ToolSchema
from memstory.reporting.markdown import as_markdown
from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import run_document, write_reports
from memstory.results.redaction import LEVELS, redact, stricter
from memstory.results.runs import make_fingerprint, make_run
from memstory.results.secret_values import REDACTED, Secrets

KEY = "sk-" + "proj-a1B2c3D4e5F6g7H8i9J0"
NONE = Secrets()


@pytest.fixture
def leaky(make_case):
    """A failed case that has a key in each of its texts."""
    case = make_case("S5", outcome="failed", reason=f"stories/s5.yaml:9:14 step 1 (say): it said {KEY}")
    (trial,) = (make_case.trial(outcome="failed", answer=f"It is {KEY}."),)
    step = replace(trial.recording.steps[0], args={"text": f"Use {KEY}"}, error=f"401 for {KEY}", names={"k": KEY})
    about = {"embedder": "x", "url": "http://ann:hunter2@host"}
    recording = replace(trial.recording, steps=(step,), about=about)
    return replace(case, trials=(replace(trial, recording=recording),), options={"api_key": "abc", "k": 5})


@pytest.fixture
def everything(tmp_path):
    """Return a function: a result to all that is written or printed of it."""

    def of(result):
        run = write_reports(tmp_path, make_run([result], make_fingerprint([result])))
        return "\n".join([*(path.read_text("utf-8") for path in tmp_path.iterdir()), terminal_summary(run)])

    return of


def test_no_secret_is_left_in_anything_that_is_made_of_a_result(leaky, everything):
    # SEC-12
    safe = redact(leaky, "secrets", NONE)
    assert KEY in everything(leaky)
    assert KEY not in everything(safe)
    assert "hunter2" not in everything(safe)
    assert safe.options == {"api_key": REDACTED, "k": 5}


def test_redaction_changes_no_outcome_no_id_and_no_number(leaky):
    def fixed(case):
        trial = case.trials[0]
        return (
            [case.id, case.story, case.target, case.where, case.digest, case.outcome, case.covers, case.seconds]
            + [(one.passed, one.field, one.check, one.where, one.step) for one in trial.verdicts]
            + [(one.path, one.op, one.user, one.session, one.at, one.seconds) for one in trial.recording.steps]
        )

    for level in LEVELS:
        assert fixed(redact(leaky, level, NONE)) == fixed(leaky)


def test_the_report_says_how_many_values_were_redacted(leaky, make_case):
    safe = redact(leaky, "secrets", NONE)
    fingerprint = make_fingerprint([safe], options={"token": REDACTED})
    run = make_run([safe, make_case("S6")], fingerprint)
    (count,) = safe.redacted.values()
    assert count >= 7
    assert run.redacted == {"secrets": count + 1, "texts": 0}
    assert f"| Redacted | {count + 1} secrets |" in as_markdown(run_document(run))
    assert f"Redacted from all that was written: {count + 1} secrets." in terminal_summary(run)


def test_a_result_without_secrets_is_the_same_result(make_case):
    case = make_case()
    assert redact(case, "secrets", NONE) is case
    assert redact(case, "none", NONE) is case


def test_with_none_nothing_is_taken_out(leaky):
    assert redact(leaky, "none", NONE) is leaky


def test_ids_of_documents_are_never_looked_into(make_case):
    case = make_case.retrieval()
    record = case.trials[0].recording.retrieval[0]
    asked = replace(record.questions[0], retrieved=("password=x", "4111111111111111"), relevant=("password=x",))
    recording = replace(case.trials[0].recording, retrieval=(replace(record, questions=(asked,)),))
    case = replace(case, trials=(replace(case.trials[0], recording=recording),))
    safe = redact(case, "texts", NONE)
    assert encode(safe.trials[0].recording.retrieval) == encode(recording.retrieval)


@pytest.mark.parametrize("said", ["api key\r\nAbCd1234EfGh5678", '{"auth": "dXNlcjpodW50ZXIyeHg="}'])
def test_a_secret_with_signs_that_json_escapes_is_taken_out(make_case, said):
    kept = str(encode(redact(make_case(trials=[make_case.trial(answer=said)]), "secrets", NONE)))
    assert REDACTED in kept
    assert not any(secret in kept for secret in ("AbCd1234", "dXNlcjpo"))


def test_what_was_saved_is_searched_whatever_its_name_is(make_case):
    trial = make_case.trial()
    step = replace(trial.recording.steps[0], names={"user": f"ann with {KEY}", "path": {"at": KEY}})
    case = make_case(trials=[replace(trial, recording=replace(trial.recording, steps=(step,)))])
    assert KEY not in str(encode(redact(case, "secrets", NONE)))


def test_a_saved_name_that_sounds_like_a_secret_leaves_the_id_that_it_names(make_case):
    trial = make_case.trial()
    step = replace(trial.recording.steps[0], args={"id": "row-12345678"}, names={"secret": "row-12345678"})
    case = make_case(trials=[replace(trial, recording=replace(trial.recording, steps=(step,)))])
    assert redact(case, "secrets", NONE) is case


def spoken(make_case, **fields):
    """A case whose one step has the given fields, with its texts redacted."""
    trial = make_case.trial(outcome="failed", answer="Quimperlune")
    step = replace(trial.recording.steps[0], **fields)
    tools = (
        ToolSchema(name="memory_save", description="Saves.", parameters={"properties": {"topic": {"type": "string"}}}),
    )
    recording = replace(trial.recording, steps=(step,), tools=tools)
    case = make_case("C15", outcome="failed", trials=[replace(trial, recording=recording)])
    return redact(case, "texts", NONE)


def test_no_text_is_left_but_equal_texts_are_seen_to_be_equal_and_how_long_they_are(make_case, everything):
    call = {"name": "memory_save", "args": {"topic": "Quimperlune", "Ottoline": 1}, "result": "Ottoline", "error": None}
    safe = spoken(make_case, args={"text": "Quimperlune"}, result={"answer": "Quimperlune", "tool_calls": [call]})
    (step,) = safe.trials[0].recording.steps
    assert step.args == {"text": "[text 1, 11 characters]"}
    assert step.result == {
        "answer": "[text 1, 11 characters]",
        "tool_calls": [
            {
                "name": "memory_save",
                "args": {"topic": "[text 1, 11 characters]", "[text 2, 8 characters]": 1},
                "result": "[text 2, 8 characters]",
                "error": None,
            }
        ],
    }
    assert "Quimperlune" not in everything(safe)
    assert "Ottoline" not in everything(safe)


def test_words_of_the_story_language_times_and_numbers_stay(make_case):
    data = {"count": 3, "at": "2026-01-01T12:00:00+00:00", "sister": "Ottoline"}
    safe = spoken(make_case, op="inspect", args={"what": "status", "args": {}}, result={"data": [data, None, True]})
    (step,) = safe.trials[0].recording.steps
    assert step.args == {"what": "status", "args": {}}
    (kept, nothing, truth) = next(iter(step.result.values()))
    assert list(kept.values()) == [3, "2026-01-01T12:00:00+00:00", "[text 5, 8 characters]"]
    assert (nothing, truth) == (None, True)
    assert "sister" not in str(step.result)


def test_a_reason_keeps_its_place_and_loses_its_words(make_case):
    case = make_case("C15", outcome="failed", reason="stories/c.yaml:9:14 step 2 (say): it said Quimperlune")
    assert redact(case, "texts", NONE).reason == "stories/c.yaml:9:14: [text 11, 34 characters]"


def test_why_a_target_cannot_run_a_story_stays(make_case):
    case = make_case("C15", outcome="unsupported", reason="'fts5' does not support chat")
    assert redact(case, "texts", NONE).reason == "'fts5' does not support chat"


def test_a_traceback_is_a_text(make_case, everything):
    case = make_case("C15", outcome="error", reason="stories/c.yaml:1:1: Quimperlune is gone")
    assert "Traceback" in everything(case)
    safe = redact(case, "texts", NONE)
    assert "Traceback" not in everything(safe)
    assert "Quimperlune" not in everything(safe)


def test_secrets_are_counted_apart_from_texts(leaky):
    safe = redact(leaky, "texts", NONE)
    assert safe.redacted["secrets"] == redact(leaky, "secrets", NONE).redacted["secrets"]
    assert safe.redacted["texts"] >= 7


@pytest.mark.parametrize(("one", "other", "wins"), [("none", "secrets", "secrets"), ("texts", "secrets", "texts")])
def test_of_two_levels_the_stricter_wins(one, other, wins):
    assert stricter(one, other) == stricter(other, one) == wins


def test_of_a_task_that_was_left_behind_it_stays_which_it_was_and_not_what_its_exception_says(make_case):
    said = "the target left a task behind that broke, write: OSError: Ana likes tea"
    trial = make_case.trial()
    trial = replace(trial, recording=replace(trial.recording, left=(said,)), warnings=("k is large", said))
    case = redact(make_case(trials=[trial], warnings=("k is large", said)), "texts", NONE)
    (kept, hidden), (left,) = case.warnings, case.trials[0].recording.left
    assert kept == "k is large"
    assert hidden == left == case.trials[0].warnings[1]
    assert hidden.startswith("the target left a task behind that broke, write: [text ")
    assert "tea" not in str(case.warnings)
