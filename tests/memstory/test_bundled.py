"""How the stories that come with memstory are named, wherever they are installed."""

from memstory.bundled import bundled_stories, named_path, shown_path


def test_a_bundled_file_has_the_name_that_can_be_typed_and_that_name_leads_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = bundled_stories() / "generic/list.yaml"
    assert shown_path(path, tmp_path) == "bundled/generic/list.yaml"
    assert named_path("bundled/generic/list.yaml") == path


def test_a_file_of_the_project_is_named_from_it_and_any_other_in_full(tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "bundled").mkdir(parents=True)
    (project / "bundled/a.yaml").write_text("")
    monkeypatch.chdir(project)
    assert shown_path(project / "bundled/a.yaml", project) == "bundled/a.yaml"
    assert named_path("bundled/a.yaml").resolve() == project / "bundled/a.yaml"
    assert shown_path(tmp_path / "b.yaml", project) == f"{tmp_path}/b.yaml"
