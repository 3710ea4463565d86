"""The lists on which the guards are measured can be judged, and the guards do not fall behind what was measured."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("guards", ROOT / "benchmarks/guards.py")
guards = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guards)

LISTS = [f"{name}{more}" for name in guards.GUARDS for more in ("", "_more")]


@pytest.mark.parametrize("name", LISTS)
def test_each_row_says_what_it_is_once(name):
    rows = guards.rows_of(name)
    answer = {"crisis": "risk", "unsafe_rules": "unsafe", "secrets": "secret"}[name.removesuffix("_more")]
    assert len({row["say"] for row in rows}) == len(rows)
    assert all(row[answer] in (True, False, "choice") and row["kind"] for row in rows)


@pytest.mark.parametrize("name", [name for name in LISTS if name.startswith("secrets")])
def test_what_has_to_go_is_in_its_text(name):
    assert all((row["secret"] is True) == ("gone" in row) for row in guards.rows_of(name))
    assert all(row.get("gone", "") in row["say"] for row in guards.rows_of(name))


@pytest.mark.parametrize("name", guards.GUARDS)
def test_the_open_half_is_judged_as_it_is_written(name):
    mine = [row for row in guards.rows_of(name) if guards.half_of(row) == guards.OPEN]
    assert mine
    assert [row["say"] for row in mine if guards.is_wrong(name, row)] == []
