"""Which paths a story may name."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import StoryError
from memstory.language.story_paths import Bounds


@pytest.fixture
def bounds(tmp_path):
    base = tmp_path / "stories" / "inner"
    workspace = tmp_path / "case"
    base.mkdir(parents=True)
    workspace.mkdir()
    return Bounds(base=base, workspace=workspace)


@pytest.mark.parametrize(
    "value",
    [
        "/etc/passwd",
        "../../outside",
        "tapes/../../../outside",
        "~",
        "~/x",
        "~root/x",
        "replay:/etc/passwd",
        "replay:../../x",
        "record:offline@/tmp/x.json",
        "record:ollama:qwen3:4b@../../x.json",
        "record:offline@~/x.json",
        "file:///etc/passwd",
        "sqlite:///../../../x.db",
        "sqlite:////etc/x.db",
    ],
)
def test_a_path_that_leads_out_is_refused_anywhere_in_a_value(bounds, value):
    for nested in (value, {"folder": value}, [value], {"deep": [{"er": value}]}):
        with pytest.raises(StoryError, match=r"options.*is outside the stories' root .*; --memstory-any-path allows"):
            bounds.check("options", nested)


@pytest.mark.parametrize(
    "value",
    [
        *("offline", "30d", "", "tapes/x.json", "x/../y", "replay:../beside.json", "replay:x.json", "record:offline@x"),
        *("http://127.0.0.1:8000/v1/../x", "postgresql://me@host/db", "a\0b", 5, None, True, [], {}, "all ~ of it"),
    ],
)
def test_what_stays_inside_and_what_is_no_path_is_allowed(bounds, value):
    bounds.check("options", value)


def test_a_path_in_the_folder_of_the_case_is_allowed(bounds):
    bounds.check("args", {"folder": f"{bounds.workspace}/backup"})


@pytest.mark.parametrize("where", ["base", "workspace"])
def test_a_symlink_that_leads_out_is_refused(bounds, tmp_path, where):
    (getattr(bounds, where) / "link").symlink_to(tmp_path)
    for value in ("link", "link/x", *(["replay:link/x"] if where == "base" else [])):
        with pytest.raises(StoryError, match="is outside"):
            bounds.check("options", value)


def test_a_symlink_within_is_allowed(bounds):
    (bounds.base / "link").symlink_to(bounds.base.parent)
    bounds.check("options", "link/tape.json")


def test_who_says_anywhere_may_name_any_path(bounds):
    Bounds(base=bounds.base, workspace=bounds.workspace, anywhere=True).check("options", "/etc/passwd")


def test_a_recording_is_looked_up_from_the_folder_of_the_story(bounds):
    whole = bounds.whole({"chat": "replay:tapes/x.json", "top_k": 3, "embedder": "minilm", "record": "record:offline"})
    tape = bounds.base / "tapes/x.json"
    assert whole == {"chat": f"replay:{tape}", "top_k": 3, "embedder": "minilm", "record": "record:offline"}
    assert bounds.whole({"chat": "record:a:b@x"}) == {"chat": f"record:a:b@{bounds.base / 'x'}"}


@given(st.text(alphabet="./~ab:@\\\0é\n", max_size=30))
def test_any_text_is_allowed_or_refused_in_words_and_an_allowed_one_stays_inside(text):
    bounds = Bounds(base=Path("/nowhere/stories/inner"), workspace=Path("/nowhere/case"))
    try:
        bounds.check("options", text)
    except StoryError as error:
        assert "--memstory-any-path" in error.message  # noqa: PT017  (either is right; this is what a refusal says)
    else:
        joined = Path("/nowhere/stories/inner", text.replace("\0", "")).resolve()
        is_no_path = "\0" in text or "://" in text
        assert is_no_path or joined.is_relative_to("/nowhere/stories") or joined.is_relative_to("/nowhere/case")
