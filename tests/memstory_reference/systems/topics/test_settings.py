from dataclasses import asdict

import pytest

from memstory_reference.errors import InputError
from memstory_reference.systems.topics.settings import TopicsSettings


def test_the_shipped_file_sets_every_setting_to_a_value_that_is_allowed():
    defaults = TopicsSettings.default()
    assert (defaults.chroma_path, defaults.collection) == (".chroma", "local2.memory")
    assert (defaults.top_k, defaults.min_score, defaults.toolset) == (5, None, "single")
    assert defaults.merge(asdict(defaults), "test") == defaults


def test_a_file_overrides_what_it_names_and_keeps_the_rest(tmp_path):
    file = tmp_path / "memory.yaml"
    file.write_text("top_k: 1\nmin_score: 0.99\nembedding_model: nomic-embed-text\n", encoding="utf-8")
    settings = TopicsSettings.read(file)
    assert (settings.top_k, settings.min_score, settings.embedding_model) == (1, 0.99, "nomic-embed-text")
    assert settings.collection == "local2.memory"
    file.write_text("# nothing\n", encoding="utf-8")
    assert TopicsSettings.read(file) == TopicsSettings.default()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("top_q: 5", "unknown setting 'top_q'. Did you mean 'top_k'? Known: chroma_path, "),
        ("top_k: 0", "top_k is 0; allowed: a whole number from 1 to 1000"),
        ("top_k: true", "top_k is True; allowed: a whole number"),
        ("top_k: '5'", "top_k is '5'; allowed: a whole number"),
        ("top_k: null", "top_k is None; allowed: a whole number"),
        ("min_score: 2", "min_score is 2; allowed: a number from -1 to 1"),
        ("min_score: .nan", "min_score is nan; allowed: a number from -1 to 1"),
        ("toolset: triple", "toolset is 'triple'; allowed: single or dual"),
        ("toolset: [single]", "allowed: single or dual"),
        ("strict_topics: 1", "strict_topics is 1; allowed: true or false"),
        ("retention_days: -1", "retention_days is -1; allowed: a number of days from 0 to 365000, or null"),
        ("collection: ''", "collection is ''; allowed: a name on one line"),
        ("ollama_host: localhost", "ollama_host is 'localhost'; allowed: an address such as http://"),
        ("5: 5", "unknown setting 5"),
        ("[top_k]", "settings are 'key: value' lines, not a list"),
        ("top_k: [", "is not YAML"),
        ("top_k: 2026-13-45", "is not YAML"),
        (f"top_k: {'9' * 5_000}", "is not YAML"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file_and_what_is_allowed(tmp_path, line, said):
    file = tmp_path / "memory.yaml"
    file.write_text(line, encoding="utf-8")
    with pytest.raises(InputError) as error:
        TopicsSettings.read(file)
    assert str(error.value).startswith(f"{file}: ")
    assert said in str(error.value)


@pytest.mark.parametrize("user", ["ann:geheim", "ann:ge/heim", "ann:ge@heim"])
@pytest.mark.parametrize("form", ["ollama_host: postgresql://{}@box/d", "chroma_path: [postgresql://{}@box/d]"])
def test_a_wrong_setting_is_shown_without_the_password_in_it(tmp_path, user, form):
    file = tmp_path / "memory.yaml"
    file.write_text(form.format(user), encoding="utf-8")
    with pytest.raises(InputError, match="postgresql://box/d") as error:
        TopicsSettings.read(file)
    assert "heim" not in str(error.value)


def test_a_number_of_thousands_of_digits_is_refused_as_any_other():
    with pytest.raises(InputError, match="top_k is a number of thousands of digits; allowed: a whole number"):
        TopicsSettings.default().merge({"top_k": 10**5_000}, "here")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.yaml: cannot be read as settings"):
        TopicsSettings.read(tmp_path / "absent.yaml")


def test_the_variable_goes_before_the_default_and_a_written_setting_before_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("OLLAMA_HOST", "box")
    assert TopicsSettings.default().ollama_host == "http://box:11434"
    file = tmp_path / "memory.yaml"
    file.write_text("ollama_host: http://other:1\n", "utf-8")
    assert TopicsSettings.read(file).ollama_host == "http://other:1"
