"""Damaged files from sound ones, as an editor, a full disk or a wrong program leaves them; the same for one seed."""

from __future__ import annotations

import copy
import functools
import os
import pickle
from collections.abc import Callable, Iterator
from random import Random

import pytest

from memstory.contract.errors import SetupError, StoryError

SEED = int(os.environ.get("MEMSTORY_FUZZ_SEED", "0"))

ODD = (
    *(None, True, False, 0, -1, 3, 10**30, 1.5, float("nan"), float("inf"), -1e308),
    *("", " ", "x", "${x}", "\ud800", "\x00", "(a+)+", "nan", "ä" * 300),
    *([], {}, [[]], [None], {"": None}, ["a", "a"], [1, "b"], {"a": {"a": {}}}),
)
PIECES = (
    b"",
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\n",
    b"\t",
    b"null",
    b"-",
    b"1e999",
    b"\\ud800",
)
DEEP = 3_000
LONGEST = 20_000


class Sound:
    """A sound tree, to be copied and walked 200,000 times: that is most of what the files cost."""

    def __init__(self, tree: object) -> None:
        self.packed = pickle.dumps(tree)
        self.paths = [path for path in _paths(tree) if path]

    def copy(self) -> object:
        return pickle.loads(self.packed)  # noqa: S301  (our own)


def damaged(sound: Sound, write: Callable[[object], bytes], random: Random) -> bytes:
    """Return the bytes of a file whose tree, or whose text, or both, are damaged in one to three places."""
    kind = random.random()
    tree, paths = sound.copy(), sound.paths
    if kind < 0.8:
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            tree = damaged_tree(tree, paths, random)
            paths = None
    content = write(tree)
    return damaged_bytes(content, random) if kind > 0.7 else content


def damaged_tree(tree: object, paths: list[tuple[object, ...]] | None, random: Random) -> object:
    """Return `tree`, whose places `paths` are if they are known, with one part replaced, removed, renamed or moved."""
    paths = [path for path in _paths(tree) if path] if paths is None else paths
    if not paths:
        return random.choice(ODD)
    path = random.choice(paths)
    around = _at(tree, path[:-1])
    value, deed = around[path[-1]], random.random()
    if deed < 0.55:
        around[path[-1]] = copy.deepcopy(random.choice(ODD))
    elif deed < 0.65:
        around[path[-1]] = copy.deepcopy(_at(tree, random.choice(paths)))
    elif deed < 0.75 and isinstance(around, dict):
        around[random.choice(paths)[-1] if random.random() < 0.5 else f"{path[-1]}x"] = around.pop(path[-1])
    elif deed < 0.8:
        around[path[-1]] = {"a": value} if random.random() < 0.5 else [value, value]
    else:
        del around[path[-1]]
    return tree


def damaged_bytes(content: bytes, random: Random) -> bytes:
    """Return `content` cut off, with a piece too much or too little, or with a value nested very deep."""
    place = random.randrange(len(content) + 1)
    end = min(len(content), place + random.choice((0, 1, 1, 5, 40)))
    deed = random.random()
    if deed < 0.2:
        return content[:place]
    if deed < 0.25:
        return content[:place] + b"[" * DEEP + content[place:]
    if deed < 0.35:
        return content[:end] + content[place:]
    return content[:place] + random.choice(PIECES) + content[end:]


def _paths(tree: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, inner in pairs:
        yield from _paths(inner, (*path, key))


def _at(tree: object, path: tuple[object, ...]) -> object:
    for key in path:
        tree = tree[key]
    return tree


def read_damaged(files, sounds, write, read, messages=(SetupError, StoryError)):
    """Read damaged files; say which seed gives the file that broke."""
    refused, prepared = 0, [Sound(tree) for tree in sounds]
    for number in range(files):
        random = Random(f"{SEED}-{number}")  # noqa: S311  (no secret)
        content = damaged(random.choice(prepared), write, random)
        try:
            read(content)
        except messages as error:
            refused += 1
            if not 0 < len(str(error).strip()) < LONGEST:
                pytest.fail(f"file {number} is refused by a message of {len(str(error))} characters")
        except Exception as error:
            error.add_note(f"seed {SEED}, file {number}: {content[:2000]!r}")
            raise
    assert refused > files / 10, "the files are not damaged enough to show anything"


@pytest.fixture
def fuzz(files):
    """Reads so many damaged files of sound trees."""
    return functools.partial(read_damaged, files)
