"""Targets that are tables of a `memstory.toml`."""

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import SetupError
from memstory.contract.target import Environment, Target, TargetFactory
from memstory.controls import OracleFactory
from memstory.targets.discovery import bundled_tables, known_names, load_spec, load_targets, project_tables
from memstory.targets.tables.http import HttpFactory
from memstory.targets.tables.mcp import McpFactory

TABLES = """
[targets.mine]
type = "mcp"
command = ["serve"]
[targets.rest]
type = "http"
url = "http://127.0.0.1:1"
[targets.perfect]
target = "memstory.controls:OracleFactory"
[targets.wrong]
type = "mcp"
comand = ["serve"]
"""


class Told(Target):
    async def open(self, env, clock):
        self.options = env.options

    async def close(self):
        pass


class ToldFactory(TargetFactory):
    name = "told"

    def capabilities(self, options):
        return frozenset(f"option.{name}" for name in options)

    def target(self):
        return Told()


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "memstory.toml").write_text(TABLES)
    return project_tables(tmp_path)


def test_a_table_is_a_target_of_its_name(tables):
    loaded = load_targets(["mine", "rest", "perfect"], tables)
    assert [type(factory) for factory in loaded.values()][:2] == [McpFactory, HttpFactory]
    assert set(tables) <= set(known_names(tables))


def test_what_nobody_chose_need_not_be_right(tables):
    assert list(load_targets(["mine"], tables)) == ["mine"]
    with pytest.raises(SetupError, match=r"memstory\.toml: \[targets\.wrong\] unknown key 'comand'"):
        load_targets(["wrong"], tables)


def test_another_process_makes_the_same_target_by_its_spec(tables):
    factory = load_targets(["mine"], tables)["mine"]
    again = load_spec(factory.spec)
    assert (type(again), again.spec) == (McpFactory, factory.spec)


def test_the_tables_that_come_along_are_known_without_a_file():
    assert {"mcp-manager", "mcp-server-memory", "mcp-chroma", "mcp-memory-service"} <= set(known_names())
    assert isinstance(load_targets(["mcp-manager"])["mcp-manager"], McpFactory)


def test_a_projects_own_table_wins_over_one_that_comes_along(tmp_path):
    (tmp_path / "memstory.toml").write_text('[targets.mcp-manager]\ntarget = "memstory.controls:OracleFactory"\n')
    loaded = load_targets(["mcp-manager"], project_tables(tmp_path))
    assert not isinstance(loaded["mcp-manager"], McpFactory)
    assert "mcp-manager" in bundled_tables()


def test_a_table_in_any_file_is_named_by_file_and_name(tmp_path, tables):
    spec = tables["perfect"]
    assert load_targets([spec])[spec].capabilities({}) == OracleFactory().capabilities({})
    with pytest.raises(SetupError, match=r"memstory\.toml: unknown target 'perfct'\. Did you mean 'perfect'\?"):
        load_spec(spec.replace("#perfect", "#perfct"))
    with pytest.raises(SetupError, match="there is no file"):
        load_spec(str(tmp_path / "other.toml#x"))


async def test_a_table_gives_a_class_options_that_run_and_story_can_change(tmp_path, monkeypatch):
    monkeypatch.setitem(
        __import__("sys").modules, "told_target", __import__("types").SimpleNamespace(Factory=ToldFactory)
    )
    text = '[targets.deep]\ntarget = "told_target:Factory"\noptions = { depth = 3, top_k = 5 }\n'
    (tmp_path / "memstory.toml").write_text(text)
    factory = load_targets(["deep"], project_tables(tmp_path))["deep"]
    assert factory.capabilities({}) == {"option.depth", "option.top_k"}
    target = factory.target()
    await target.open(Environment(workspace=str(tmp_path), owner="ann", options={"top_k": 9}), StoryClock())
    assert target.options == {"depth": 3, "top_k": 9}


def test_a_folder_without_a_file_has_no_tables(tmp_path):
    assert project_tables(tmp_path) == {}
