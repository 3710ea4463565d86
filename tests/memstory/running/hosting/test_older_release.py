"""A target that is opened with an older release of its library, and then with the one that is installed."""

import textwrap
from importlib import import_module

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import Refused, SetupError
from memstory.contract.target import Environment, Request, Target
from memstory.controls import OracleFactory
from memstory.running.hosting.host import HostedTarget
from memstory.running.stage import open_stage

TARGET = """
from importlib.metadata import version
from memstory.contract.errors import TargetError
from memstory.controls import Oracle, OracleFactory
from pathlib import Path

class Versioned(Oracle):
    async def open(self, env, clock):
        mark = Path(env.workspace, "written_by")
        if mark.exists() and mark.read_text() > version("memstory-shelf"):
            raise TargetError("written by a newer release")
        mark.write_text(version("memstory-shelf"))
        await super().open(env, clock)

    async def about(self):
        return {"shelf": version("memstory-shelf")}

class VersionedFactory(OracleFactory):
    spec = "versioned:VersionedFactory"
    def target(self):
        return Versioned()
"""


def release(folder, number, name="shelf", *, named=True):
    info = folder / f"memstory_{name}-{number}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: memstory-{name}\nVersion: {number}\n")
    if named:
        (info / "REQUESTED").touch()
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Install release 2 of a library and a target that uses it; return the folder of release 1."""
    installed = release(tmp_path / "installed", "2")
    (installed / "versioned.py").write_text(textwrap.dedent(TARGET))
    monkeypatch.syspath_prepend(str(installed))
    return release(tmp_path / "older", "1")


@pytest.fixture
def factory(place):
    assert place.is_dir()
    return import_module("versioned").VersionedFactory()


def environment(tmp_path, folder, **more):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return Environment(workspace=str(workspace), owner="ann", options={"older": str(folder)}, **more)


async def about(stage):
    return (await stage.target.perform(Request.of(Target.about)))["shelf"]


async def test_a_stage_begins_with_the_older_release_and_goes_on_with_the_installed_one(tmp_path, factory, place):
    stage = open_stage(environment(tmp_path, place, older=True), factory, hosted=True)
    await stage.open()
    try:
        assert await about(stage) == "1"
        await stage.change_release(older=False)
        assert await about(stage) == "2"
    finally:
        await stage.close()


async def test_an_older_release_that_refuses_leaves_the_newer_one_open(tmp_path, factory, place):
    stage = open_stage(environment(tmp_path, place, older=True), factory, hosted=True)
    await stage.open()
    try:
        await stage.change_release(older=False)
        with pytest.raises(Refused, match="written by a newer release"):
            await stage.change_release(older=True)
        assert await about(stage) == "2"
    finally:
        await stage.close()


@pytest.mark.parametrize("number", [None, "2"])
async def test_a_folder_without_another_release_is_refused(tmp_path, factory, number):
    folder = tmp_path / "none" if number is None else release(tmp_path / "same", number)
    target = HostedTarget(factory, tmp_path / "host")
    with pytest.raises(SetupError, match="older"):
        await target.open(environment(tmp_path, folder, older=True), StoryClock())


async def test_another_release_of_what_the_library_needs_is_no_older_release_of_it(tmp_path, factory, monkeypatch):
    monkeypatch.syspath_prepend(str(release(tmp_path / "needed", "4", "board")))
    folder = release(release(tmp_path / "same", "2"), "3", "board", named=False)
    target = HostedTarget(factory, tmp_path / "host")
    with pytest.raises(SetupError, match="older"):
        await target.open(environment(tmp_path, folder, older=True), StoryClock())


def test_only_a_target_with_a_folder_of_an_older_release_upgrades():
    class OnDisk(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) - {"upgrade"}

    assert "upgrade" not in OnDisk().abilities({})
    assert "upgrade" in OnDisk().abilities({"older": "folder"})
    assert "option.older" in OnDisk().abilities({})
