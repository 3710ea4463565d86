"""Variables of the environment in a table: filled in, and never told."""

from __future__ import annotations

import pytest

from memstory.contract.errors import SetupError
from memstory.targets.tables.templates import Variables


@pytest.fixture
def variables(monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-12345678")
    monkeypatch.setenv("LONGER", "sk-12345678-more")
    monkeypatch.setenv("PORT", "8080")
    return Variables("memstory.toml: [targets.x]")


def test_what_is_secret_is_taken_out_of_what_is_told_the_longer_first(variables):
    filled = variables.fill("headers.a", "${A_KEY},${LONGER}", is_secret=True)
    assert filled == "sk-12345678,sk-12345678-more"
    assert variables.redact(f"got {filled}") == "got ${A_KEY},${LONGER}"


def test_what_is_not_secret_may_be_told(variables):
    assert variables.fill("url", "http://h:${PORT}") == "http://h:8080"
    assert variables.redact("port 8080") == "port 8080"


def test_short_values_are_left_where_ordinary_words_are_expected(variables, monkeypatch):
    monkeypatch.setenv("SHORT", "tea")
    variables.fill("headers.a", "${SHORT}", is_secret=True)
    assert variables.redact("tea", shortest=8) == "tea"
    assert variables.redact("tea") == "${SHORT}"


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_without_a_value_names_table_key_and_itself(variables, monkeypatch, value):
    monkeypatch.delenv("A_KEY") if value is None else monkeypatch.setenv("A_KEY", value)
    with pytest.raises(SetupError, match=r"\[targets.x\] 'url' takes the environment variable A_KEY"):
        variables.fill("url", "${A_KEY}")
