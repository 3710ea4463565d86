"""Two services of one memory: on Postgres they are one memory, on a folder the second is refused in one line."""

import threading
from contextlib import suppress
from itertools import count

import httpx
import pytest
from memstory_tests_waiting import wait_until

from memstory_reference.cli import main
from memstory_reference.system_memory import SYSTEM_NAMES


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_a_second_process_on_the_folder_of_any_memory_is_one_line_that_names_postgres(serve_http, capsys, system):
    first = serve_http(system=system)
    first.ask("POST", "/memories", text="My boat is in Bergen.")
    store, embedder = str(first.folder / system), "none" if system == "layers" else "words"
    settings = first.folder / "settings.yaml"
    settings.write_text(
        f"memory: {{embedding_model: {embedder}}}" if system == "manager" else f"embedding_model: {embedder}"
    )
    at_store = ["--system", system, "--store", store, "--embedder", embedder]
    for typed in (
        ["serve", "http", *at_store, "--port", "1"],
        ["chat", *at_store],
        ["mcp", "--system", system, "--path", store, "--config", str(settings)],
    ):
        assert main(typed) == 1, typed
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), typed
        assert "in use by another process" in err
        assert "each of the six runs as several services on Postgres ('store: postgres'" in err
    assert first.ask("GET", "/search", query="boat Bergen")["memories"]


def add(server, text):
    (added,) = server.ask("POST", "/memories", text=text)["memories"]
    return added["id"]


def found(server, query):
    return {one["id"] for one in server.ask("GET", "/search", query=query)["memories"]}


def stored_ids(server):
    return {one["id"] for one in server.ask("GET", "/memories", limit=500)["memories"]}


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_two_services_on_one_postgres_are_one_memory_and_one_of_them_may_be_killed(
    serve_http, postgres_database, system
):
    first, second = [serve_http(system=system, store=postgres_database) for _ in range(2)]
    boat, pilot = add(first, "My boat is in Bergen."), add(second, "My sister is a pilot.")
    for server in (first, second):
        assert boat in found(server, "boat Bergen")
        assert pilot in found(server, "sister pilot")
        assert stored_ids(server) == {boat, pilot}

    acknowledged = []

    def write():
        with suppress(httpx.TransportError):
            acknowledged.extend(add(first, f"Word{n} stands on page{n} of book{n}.") for n in count())

    writing = threading.Thread(target=write)
    writing.start()
    wait_until(lambda: len(acknowledged) > 5)
    meanwhile = add(second, "The tram was late again.")
    first.process.kill()
    writing.join()

    assert len(stored_ids(second) - {boat, pilot, meanwhile, *acknowledged}) <= 1, "the one that was under way"
    assert stored_ids(second) >= {boat, pilot, meanwhile, *acknowledged}
    second.ask("DELETE", f"/memories/{boat}")
    third = serve_http(system=system, store=postgres_database)
    assert boat not in stored_ids(third)
    assert stored_ids(third) == stored_ids(second)
