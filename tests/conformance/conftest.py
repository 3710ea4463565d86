"""What the suites need of the machine."""

import os

import pytest

from memstory_reference.adapters.servers.embedded_nats import nats_server, running_server
from memstory_reference.errors import SetupProblem


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory):
    """The server that MEMSTORY_NATS names, else one of our own.

    Workers that run side by side have one each: on one server they would hear each other.
    """
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if is_worker or "MEMSTORY_NATS" not in os.environ:
        try:
            nats_server()
        except SetupProblem as problem:
            pytest.skip(str(problem))
    with running_server(tmp_path_factory.mktemp("nats"), {} if is_worker else os.environ) as url:
        yield url
