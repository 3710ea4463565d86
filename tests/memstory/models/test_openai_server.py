import pytest

from memstory.contract.errors import SetupError
from memstory.models.openai_server import DEFAULT, openai_server


def test_what_is_named_comes_before_the_variable():
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1", "OPENAI_API_KEY": " sk-mine\n"}
    server = openai_server("http://box/v1/", environ)
    assert (server.url, server.key) == ("http://box/v1", "sk-mine")
    assert openai_server(environ=environ).url == "http://127.0.0.1:8080/v1"
    assert openai_server(environ={"OPENAI_API_KEY": "sk-mine"}).url == DEFAULT


@pytest.mark.parametrize("url", [None, DEFAULT, "https://api.openai.com/v1/"])
def test_openai_itself_is_not_asked_without_a_key(url):
    with pytest.raises(SetupError, match=r"OPENAI_API_KEY is not set, and https://api\.openai\.com/v1 wants a key"):
        openai_server(url, {"OPENAI_API_KEY": " "})


def test_another_server_may_want_no_key_and_a_key_is_not_shown():
    assert openai_server("http://127.0.0.1:8080/v1", {}).key is None
    assert "sk-" not in repr(openai_server(environ={"OPENAI_API_KEY": "sk-mine"}))
