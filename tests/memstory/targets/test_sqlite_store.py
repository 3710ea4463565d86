import sqlite3

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported
from memstory.contract.target import Environment
from memstory.targets import sqlite_store
from memstory.targets.frameworks.langgraph_sqlite import LanggraphSqliteFactory
from memstory.targets.vector_stores.sqlite_vec import SqliteVecFactory


class WithoutExtensions:
    pass


@pytest.fixture
def _no_driver(monkeypatch):
    monkeypatch.setattr(sqlite3, "Connection", WithoutExtensions)
    monkeypatch.setattr(sqlite_store, "find_spec", lambda _: None)


def test_the_driver_really_loads_extensions():
    connection = sqlite_store.loading_driver().connect(":memory:")
    connection.enable_load_extension(True)  # noqa: FBT003  (the driver's way)
    connection.close()


def test_pythons_own_driver_is_taken_where_it_can(monkeypatch):
    monkeypatch.setattr(sqlite3, "Connection", type("Can", (), {"enable_load_extension": None}))
    assert sqlite_store.loading_driver() is sqlite3


@pytest.mark.usefixtures("_no_driver")
@pytest.mark.parametrize("factory_class", [SqliteVecFactory, LanggraphSqliteFactory])
async def test_without_any_driver_a_backend_is_unsupported_and_says_why(factory_class, tmp_path, embedders):
    target = factory_class(embedders).target()
    with pytest.raises(NotSupported, match=r"cannot load extensions.*pip install pysqlite3"):
        await target.open(Environment(workspace=str(tmp_path), owner="ann"), StoryClock())
