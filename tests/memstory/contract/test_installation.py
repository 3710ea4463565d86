"""What is to be typed for an extra, by where the package came from."""

from pathlib import Path

import pytest

from memstory.contract.installation import command_for, install_command

HERE = Path("/somewhere")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///src/m%20s", "dir_info": {"editable": True}}, "pip install '/src/m s[mem0]'"),
        ({"url": "file:///somewhere", "dir_info": {}}, "pip install '.[mem0]'"),
        ({"url": "file:///w/m.whl", "archive_info": {}}, "pip install 'memstory[mem0] @ file:///w/m.whl'"),
        (
            {"url": "https://host/m.git", "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "f00"}},
            "pip install 'memstory[mem0] @ git+https://host/m.git@v1'",
        ),
        (None, "pip install '.[mem0]' (in a clone of memstory)"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(origin, command):
    assert command_for("mem0", "memstory", origin, HERE) == command


def test_only_a_package_that_an_index_has_is_installed_by_its_name():
    assert command_for("mine", "their-memory", None, HERE) == "pip install 'their-memory[mine]'"
    assert "'memstory[" not in install_command("mem0")


def test_what_an_installer_wrote_down_is_read(tmp_path, monkeypatch):
    info = tmp_path / "their_memory-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-memory\nVersion: 1\n", "utf-8")
    (info / "direct_url.json").write_text('{"url": "file:///src/theirs", "dir_info": {}}', "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("mine", "their-memory") == "pip install '/src/theirs[mine]'"
