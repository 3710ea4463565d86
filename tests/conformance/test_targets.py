"""Every target of this project keeps what targets promise."""

from typing import ClassVar

import pytest

from memstory.conformance import TargetContract
from memstory.controls import OracleFactory
from memstory.targets.embedders import Embedders
from memstory.targets.frameworks.langgraph import LanggraphFactory
from memstory.targets.frameworks.langgraph_postgres import LanggraphPostgresFactory
from memstory.targets.frameworks.langgraph_sqlite import LanggraphSqliteFactory
from memstory.targets.vector_stores.chroma import ChromaFactory
from memstory.targets.vector_stores.chroma_server import ChromaServerFactory
from memstory.targets.vector_stores.pgvector_store import PgvectorFactory
from memstory.targets.vector_stores.sqlite_vec import SqliteVecFactory
from memstory.targets.words.bm25 import Bm25Factory
from memstory.targets.words.fts5 import Fts5Factory
from memstory_reference.targets.layers.target import LayersFactory
from memstory_reference.targets.manager.target import ManagerFactory
from memstory_reference.targets.observations.target import ObservationsFactory
from memstory_reference.targets.offered import minilm
from memstory_reference.targets.pipeline.target import PipelineFactory
from memstory_reference.targets.topics.target import TopicsFactory
from memstory_reference.targets.turns.target import TurnsFactory


def embedders():
    return Embedders({"minilm": minilm()})


class TestOracle(TargetContract):
    factory = OracleFactory


class TestFts5(TargetContract):
    factory = Fts5Factory


class TestBm25(TargetContract):
    factory = Bm25Factory


class TestChroma(TargetContract):
    factory = staticmethod(lambda: ChromaFactory(embedders()))


class TestChromaServer(TargetContract):
    factory = staticmethod(lambda: ChromaServerFactory(embedders()))


class TestLanggraph(TargetContract):
    factory = staticmethod(lambda: LanggraphFactory(embedders()))


class TestLanggraphSqlite(TargetContract):
    factory = staticmethod(lambda: LanggraphSqliteFactory(embedders()))


class OnPostgres(TargetContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, postgres_url):
        cls.options = {"postgres": postgres_url}


class TestLanggraphPostgres(OnPostgres):
    factory = staticmethod(lambda: LanggraphPostgresFactory(embedders()))


class TestPgvector(OnPostgres):
    factory = staticmethod(lambda: PgvectorFactory(embedders()))


class TestSqliteVec(TargetContract):
    factory = staticmethod(lambda: SqliteVecFactory(embedders()))


class TestTopics(TargetContract):
    factory = TopicsFactory


class TestObservations(TargetContract):
    factory = ObservationsFactory


class TestManager(TargetContract):
    factory = ManagerFactory

    def test_sessions_are_apart_where_asked_to(self):
        self.kind = "conversation"  # a fact belongs to no session: it is known in all of them
        super().test_sessions_are_apart_where_asked_to()


class TestLayers(TargetContract):
    factory = LayersFactory


class TestPipeline(TargetContract):
    factory = PipelineFactory
    kind = "working"  # only what is about now belongs to its session


class TestTurns(TargetContract):
    factory = TurnsFactory


class TestTurnsOnPostgres(TargetContract):
    factory = TurnsFactory
    options: ClassVar = {"store": "postgres"}
