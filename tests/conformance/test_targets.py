"""Every target that is installed here keeps what targets promise; `tests/backends` has those with heavy libraries."""

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar

import pytest

from memstory.conformance import TargetContract
from memstory.controls import OracleFactory
from memstory.targets.discovery import GROUP
from memstory_reference.targets.manager import ManagerFactory
from memstory_reference.targets.observations import ObservationsFactory
from memstory_reference.targets.pipeline import PipelineFactory
from memstory_reference.targets.topics import TopicsFactory
from memstory_reference.targets.turns import TurnsFactory

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
EXTRAS = set(PROJECT["project"]["optional-dependencies"])


def extras_of(group):
    """The extras that are installed with a dependency group."""
    return set(re.findall(r"[\w-]+", " ".join(one for one in PROJECT["dependency-groups"][group] if "[" in str(one))))


LIGHT = extras_of("run")


class OnPostgres(TargetContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, postgres_url):
        cls.options = {"postgres": postgres_url}


class OmittingExpired(OnPostgres):
    """LangGraph on Postgres: only with this setting of its own is what has expired gone before somebody sweeps."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, postgres_url):
        cls.options = {"postgres": postgres_url, "omit_expired": True}


class OfChroma(TargetContract):
    """A second process that has the folder open misses what the first one adds then: FP1 fails on it."""

    def test_a_second_process_finds_what_was_acknowledged(self):
        with pytest.raises(AssertionError, match="while it had the memory open"):
            super().test_a_second_process_finds_what_was_acknowledged()


class OfLanggraphSqlite(TargetContract):
    def test_a_memory_is_gone_when_its_time_is_over(self):
        with pytest.raises(AssertionError, match="still found when its 'ttl' is over"):
            super().test_a_memory_is_gone_when_its_time_is_over()


class OfManager(TargetContract):
    def test_sessions_are_apart_where_asked_to(self):
        self.kind = "conversation"  # a fact belongs to no session: it is known in all of them
        super().test_sessions_are_apart_where_asked_to()


class OfPipeline(TargetContract):
    kind = "working"  # only what is about now belongs to its session


PECULIAR = {
    "chroma": OfChroma,
    "langgraph-postgres": OmittingExpired,
    "langgraph-sqlite": OfLanggraphSqlite,
    "manager": OfManager,
    "manager-chroma": OfManager,
    "pgvector": OnPostgres,
    "pipeline": OfPipeline,
}


def contract(entry):
    return type(f"Test_{entry.name}", (PECULIAR.get(entry.name, TargetContract),), {"factory": entry.load()})


CONTRACTS = {
    f"Test_{entry.name}": contract(entry)
    for entry in entry_points(group=GROUP)
    if entry.name != "reference" and (entry.name in LIGHT or entry.name not in EXTRAS)
}
TestOffered = type("TestOffered", (), CONTRACTS)


def test_every_target_with_a_library_is_in_a_group_that_is_tested():
    offered = {entry.name for entry in entry_points(group=GROUP)} & EXTRAS
    # Graphiti is installed without dependencies; `tests/backends/test_graphiti.py` is all that tests it.
    assert offered - LIGHT - extras_of("backends") == {"graphiti"}


class TestOracle(TargetContract):
    factory = OracleFactory


class TestTurnsOnPostgres(TargetContract):
    factory = TurnsFactory
    options: ClassVar = {"store": "postgres"}


class TestTopicsOnPostgres(TargetContract):
    factory = TopicsFactory
    options: ClassVar = {"store": "postgres"}


class TestManagerOnPostgres(OfManager):
    factory = ManagerFactory
    options: ClassVar = {"store": "postgres"}


class TestObservationsOnPostgres(TargetContract):
    factory = ObservationsFactory
    options: ClassVar = {"store": "postgres"}


class TestPipelineOnPostgres(OfPipeline):
    factory = PipelineFactory
    options: ClassVar = {"store": "postgres"}
