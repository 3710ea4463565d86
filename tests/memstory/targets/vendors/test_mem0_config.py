import pytest

from memstory.contract.errors import SetupError
from memstory.targets.vendors.mem0 import Mem0Factory
from memstory.targets.vendors.mem0_config import read_object


def test_an_object_is_read_from_where_the_command_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").write_text('{"a": {"b": 1}}', "utf-8")
    assert read_object("config", "mine.json") == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"config=mine\.json: the file cannot be read: No such file"),
        ('{\n "a": }', r"config=mine\.json:2:7: not JSON: Expecting value"),
        ("[1]", r"config=mine\.json: it holds a list; allowed: an object"),
        ("\udcff", r"config=mine\.json: the file cannot be read: it is not UTF-8"),
    ],
)
def test_a_file_that_holds_no_object_is_one_line(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "mine.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SetupError, match=said) as error:
        Mem0Factory().capabilities({"config": "mine.json"})
    assert "\n" not in str(error.value)


def test_what_is_no_path_is_refused():
    with pytest.raises(SetupError, match=r"config=3: give the path of a JSON file"):
        read_object("config", 3)
