"""The constants that the source leaves open are the operator's, within bounds (CF-7)."""

import pytest

from memstory_reference.errors import InputError
from memstory_reference.systems.layers.settings import LayersSettings, MemoryMode, parse_mode


def test_the_constants_are_as_resolved():
    config = LayersSettings()
    assert (config.repetitions, config.substantive_turns, config.substantive_tokens) == (2, 3, 30)
    assert (config.rule_cap, config.crisis_retention_days, config.support, config.duplicate) == (20, 90, 0.5, 0.85)
    assert (config.idle.total_seconds(), config.episodic_age.days) == (1200, 30)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rule_cap", 0),
        ("rule_cap", 2.5),
        ("rule_cap", True),
        ("rule_cap", "20"),
        ("duplicate", 1.1),
        ("idle_minutes", float("nan")),
        ("recall", "no"),
        ("rule_cup", 3),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=name):
        LayersSettings().merge({name: value}, "options")


def test_values_within_bounds_are_taken():
    changed = LayersSettings().merge({"idle_minutes": 0.5 * 3, "rule_cap": 3, "recall": False}, "options")
    assert (changed.idle_minutes, changed.rule_cap, changed.recall) == (1.5, 3, False)


@pytest.mark.parametrize(("name", "mode"), [("GUEST", "incognito"), (" Local ", "local"), ("synced", "synced")])
def test_modes_by_name(name, mode):
    assert parse_mode(name) is MemoryMode(mode)


def test_an_unknown_mode_names_those_there_are():
    with pytest.raises(InputError, match="guest"):
        parse_mode("private")
