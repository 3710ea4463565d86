"""What the suites need of the machine."""

import os

import pytest

from memstory.contract.errors import SetupError
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats, nats_server


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory):
    """The server that MEMSTORY_NATS names, else one of our own.

    Workers that run side by side have one each: on one server they would hear each other.
    """
    if "MEMSTORY_NATS" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        yield os.environ["MEMSTORY_NATS"]
        return
    try:
        nats_server()
    except SetupError as problem:
        pytest.skip(str(problem))
    with EmbeddedNats(tmp_path_factory.mktemp("nats")) as server:
        yield server.url
