from dataclasses import replace

import pytest

from memstory.language.stories import load_stories
from memstory.reporting.page.html import lines_in

TEXT = "# first\nstory: A\ntitle: T\nsteps: [{add: hunter2}]\n---\nstory: B\ntitle: U\nsteps: [{add: y}]\n"
ROWS = "story: R\ntitle: T\nparametrize: [{row: one, x: a}, {row: two, x: b}]\nsteps: [{add: '${x}'}]\n"


@pytest.fixture
def case(make_case, tmp_path):
    (tmp_path / "f.yaml").write_text(TEXT)

    def of(name, **more):
        (story,) = [one for one in load_stories(tmp_path / "f.yaml", "f.yaml") if one.id == name]
        return make_case(name, digest=story.digest, where=str(story.mark), **more)

    return of


def test_the_lines_of_the_document_are_found_with_their_numbers(case, tmp_path):
    find = lines_in([tmp_path], str)
    assert find(case("A")).lines == ["# first", "story: A", "title: T", "steps: [{add: hunter2}]"]
    found = find(case("B"))
    assert (
        found.lines[found.lines.index("story: B")] == TEXT.split("\n")[found.first + found.lines.index("story: B") - 1]
    )


def test_a_file_that_changed_since_gives_nothing(case, tmp_path):
    changed = case("A")
    (tmp_path / "f.yaml").write_text(TEXT.replace("title: T", "title: Other"))
    assert lines_in([tmp_path], str)(changed) is None


def test_a_result_that_names_another_file_shows_nothing_of_it(case, tmp_path):
    (tmp_path / "secret.txt").write_text("story: A\n")
    elsewhere = replace(case("A"), where=f"{tmp_path}/secret.txt:1:1")
    assert lines_in([tmp_path], str)(elsewhere) is None


def test_lines_are_cleaned_and_redacted_texts_stay_out(case, tmp_path):
    find = lines_in([tmp_path], lambda text: text.replace("hunter2", "[redacted]"))
    assert "hunter2" not in "\n".join(find(case("A")).lines)
    assert find(case("A", redacted={"texts": 1})) is None


def test_a_row_shows_the_document_that_it_is_of(make_case, tmp_path):
    (tmp_path / "r.yaml").write_text(ROWS)
    stories = load_stories(tmp_path / "r.yaml", "r.yaml")
    cases = [make_case("R", digest=one.digest, where=str(one.mark), row=one.row) for one in stories]
    assert [lines_in([tmp_path], str)(case).lines[0] for case in cases] == ["story: R", "story: R"]
