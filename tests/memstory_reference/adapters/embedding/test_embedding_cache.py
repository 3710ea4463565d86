from __future__ import annotations

import asyncio
import gc
import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder, VectorFile
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, profile_of
from memstory_reference.ports import EmbedderUnavailableError, Purpose, Vectors


class CountingEmbedder:
    """Gives each text its own vector and notes what it was asked."""

    def __init__(self, model: str = "counting", dimension: int = 8, profile: Profile = NO_PREFIXES) -> None:
        self.model = model
        self.dimension: int | None = None
        self.profile = profile
        self.calls: list[list[str]] = []
        self.size = dimension

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        self.calls.append(list(texts))
        rows = np.array([self._row(f"{self.model} {purpose} {text}") for text in texts], dtype=np.float32)
        self.dimension = self.size
        return rows

    def _row(self, text: str) -> np.ndarray:
        row = np.random.default_rng(list(text.encode("utf-8", "surrogatepass"))).normal(size=self.size)
        return row / np.linalg.norm(row)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "embeddings.sqlite3"


@pytest.fixture
async def caching():
    """Make a CachedEmbedder that is closed when the test ends."""
    made: list[CachedEmbedder] = []

    def make(*args, **options) -> CachedEmbedder:
        made.append(CachedEmbedder(*args, **options))
        return made[-1]

    yield make
    for cached in made:
        await cached.close()


async def test_known_text_is_not_asked_again(path, caching):
    inner = CountingEmbedder()
    cached = caching(inner, path)
    first = await cached.embed(["a", "b"], Purpose.DOCUMENT)
    again = await cached.embed(["b", "a"], Purpose.DOCUMENT)
    assert inner.calls == [["a", "b"]]
    assert np.array_equal(first, again[::-1])


async def test_only_new_texts_are_asked_and_each_once(path, caching):
    inner = CountingEmbedder()
    cached = caching(inner, path)
    await cached.embed(["one", "two"], Purpose.DOCUMENT)
    vectors = await cached.embed(["one", "x", "two", "y", "x", "z"], Purpose.DOCUMENT)
    assert inner.calls[1:] == [["x", "y", "z"]]
    assert np.array_equal(vectors[1], vectors[4])


async def test_cache_outlives_its_process(path, caching):
    await caching(CountingEmbedder(), path).embed(["a"], Purpose.QUERY)
    later = CountingEmbedder()
    await caching(later, path).embed(["a"], Purpose.QUERY)
    assert later.calls == []


async def test_other_model_does_not_see_these_vectors(path, caching):
    # SEC-13
    one, two = CountingEmbedder("one"), CountingEmbedder("two")
    first = await caching(one, path).embed(["a"], Purpose.QUERY)
    second = await caching(two, path).embed(["a"], Purpose.QUERY)
    assert two.calls == [["a"]]
    assert not np.allclose(first, second)


async def test_prefix_is_part_of_the_key(path, caching):
    inner = CountingEmbedder(profile=profile_of("nomic-embed-text"))
    cached = caching(inner, path)
    document, query = [await cached.embed(["a"], purpose) for purpose in Purpose]
    assert len(inner.calls) == 2
    assert not np.allclose(document, query)


async def test_without_a_path_nothing_is_kept(tmp_path, caching):
    inner = CountingEmbedder()
    incognito = caching(inner, None)
    for _ in range(2):
        await incognito.embed(["secret"], Purpose.DOCUMENT)
    assert len(inner.calls) == 2
    assert list(tmp_path.iterdir()) == []


async def test_text_itself_is_not_in_the_file(path, caching):
    cached = caching(CountingEmbedder(), path)
    await cached.embed(["my very secret preference"], Purpose.DOCUMENT)
    await cached.close()
    assert all(b"secret" not in file.read_bytes() for file in path.parent.iterdir())


async def test_failed_embedding_is_not_kept(path, caching):
    class Down(CountingEmbedder):
        async def embed(self, texts, purpose):
            raise EmbedderUnavailableError("down")

    with pytest.raises(EmbedderUnavailableError):
        await caching(Down(), path).embed(["a"], Purpose.QUERY)
    inner = CountingEmbedder()
    await caching(inner, path).embed(["a"], Purpose.QUERY)
    assert inner.calls == [["a"]]


async def test_cached_text_is_answered_while_the_embedder_is_down(path, caching):
    first = await caching(CountingEmbedder(), path).embed(["a"], Purpose.QUERY)
    down = CountingEmbedder()
    down.embed = None
    cached = caching(down, path)
    assert np.array_equal(await cached.embed(["a"], Purpose.QUERY), first)
    assert cached.dimension == 8


async def test_no_texts_touch_neither_file_nor_model(path, caching):
    inner = CountingEmbedder()
    await caching(inner, path).embed([], Purpose.QUERY)
    assert not path.exists()


async def test_strange_texts_are_told_apart(path, caching):
    cached = caching(CountingEmbedder(), path)
    texts = ["", " ", "\x00", "a\x00b", "ab", "é", "e\u0301", "\U0001f642"]
    first = await cached.embed(texts, Purpose.DOCUMENT)
    again = await cached.embed(texts, Purpose.DOCUMENT)
    assert np.array_equal(first, again)
    assert len({row.tobytes() for row in again}) == len(texts)


async def test_thousands_of_texts_in_one_call_are_all_kept(path, caching):
    texts = [f"text {n}" for n in range(2_500)]
    first = await caching(CountingEmbedder(), path).embed(texts, Purpose.DOCUMENT)
    later = CountingEmbedder()
    assert np.array_equal(await caching(later, path).embed(texts, Purpose.DOCUMENT), first)
    assert later.calls == []


@pytest.mark.parametrize(
    "garbage", [b"not a database at all, but long enough" * 50, b"SQLite format 3\x00" + b"\xff" * 5000]
)
async def test_broken_file_is_made_anew_with_one_warning(path, garbage, caplog, caching):
    path.parent.mkdir()
    path.write_bytes(garbage)
    inner = CountingEmbedder()
    cached = caching(inner, path)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await cached.embed(["a"], Purpose.QUERY)
    assert len(inner.calls) == 1
    assert [record.message.count("starts empty") for record in caplog.records] == [1]


async def test_file_that_breaks_while_open_is_made_anew(path, caplog, caching):
    cached = caching(CountingEmbedder(dimension=384), path)
    texts = [f"text {n}" for n in range(300)]
    first = await cached.embed(texts, Purpose.DOCUMENT)
    await cached.close()
    data = bytearray(path.read_bytes())
    data[4096 : len(data) // 2] = b"\xaa" * (len(data) // 2 - 4096)
    path.write_bytes(bytes(data))
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(await cached.embed(texts, Purpose.DOCUMENT), first)
    assert "starts empty" in caplog.text


async def test_vector_that_was_damaged_is_asked_again(path, caching):
    cached = caching(CountingEmbedder(), path)
    first = await cached.embed(["a", "b", "c"], Purpose.QUERY)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE vectors SET vector = zeroblob(32) WHERE id = 1")
        database.execute("UPDATE vectors SET vector = x'0000c07f' WHERE id = 2")
    database.close()
    inner = CountingEmbedder()
    assert np.array_equal(await caching(inner, path).embed(["a", "b", "c"], Purpose.QUERY), first)
    assert inner.calls == [["a", "b"]]


async def test_model_exchanged_under_its_name_is_asked_for_all(path, caching):
    await caching(CountingEmbedder(dimension=8), path).embed(["a"], Purpose.QUERY)
    new = CountingEmbedder(dimension=4)
    vectors = await caching(new, path).embed(["a", "b"], Purpose.QUERY)
    assert vectors.shape == (2, 4)
    assert new.calls[-1] == ["a", "b"]


@pytest.mark.parametrize("place", ["file/cache.sqlite3", "folder"])
async def test_place_that_cannot_be_written_is_said_once_and_left_out(tmp_path, place, caplog, caching):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder").mkdir()
    inner = CountingEmbedder()
    cached = caching(inner, tmp_path / place)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert (await cached.embed(["a"], Purpose.QUERY)).shape == (1, 8)
    assert len(inner.calls) == 3
    assert [record.message.count("without a cache") for record in caplog.records] == [1]


async def test_file_stays_within_its_bound_and_loses_the_oldest(path, caching):
    bound = 200_000
    inner = CountingEmbedder(dimension=384)
    cached = caching(inner, path, max_bytes=bound)
    for n in range(40):
        await cached.embed([f"text {n} {m}" for m in range(10)], Purpose.DOCUMENT)
    await cached.close()
    assert path.stat().st_size < 1.3 * bound
    asked = len(inner.calls)
    await cached.embed(["text 39 9"], Purpose.DOCUMENT)
    assert len(inner.calls) == asked
    await cached.embed(["text 0 0"], Purpose.DOCUMENT)
    assert len(inner.calls) == asked + 1


async def test_callers_at_once_get_their_own_vectors(path, caching):
    cached = caching(CountingEmbedder(), path)
    alone = {n: await CountingEmbedder().embed([f"text {n % 7}"], Purpose.QUERY) for n in range(7)}
    many = await asyncio.gather(*(cached.embed([f"text {n % 7}"], Purpose.QUERY) for n in range(50)))
    for n, vectors in enumerate(many):
        assert np.array_equal(vectors, alone[n % 7])


WRITER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from memstory_reference.adapters.embedding.embedding_cache import VectorFile
file = VectorFile(Path(sys.argv[1]), max_bytes=10**9)
for n in range(100):
    key = f"{sys.argv[2]} {n}".encode()
    file.put({key: np.full(384, n, dtype=np.float32)})
    assert file.get([key])[key][0] == n
"""


@pytest.mark.parametrize("start", ["new", "broken"])
def test_processes_share_one_file(path, start):
    if start == "broken":
        path.parent.mkdir()
        path.write_bytes(b"rubbish" * 2_000)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)], stderr=subprocess.PIPE, text=True)  # noqa: S603  (our own program)
        for n in range(3)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors
    with sqlite3.connect(path) as database:
        (rows,) = database.execute("SELECT count(*) FROM vectors").fetchone()
    database.close()
    assert rows == 300


OPENER = """
import sys, time
from pathlib import Path
import numpy as np
from memstory_reference.adapters.embedding.embedding_cache import VectorFile
for n in range(40):
    time.sleep(max(0, float(sys.argv[2]) + n / 20 - time.time()))
    file = VectorFile(Path(sys.argv[1]) / f"{n}/embeddings.sqlite3", max_bytes=10**9)
    file.put({b"key": np.ones(3, dtype=np.float32)})
    assert list(file.get([b"key"])) == [b"key"]
"""


def test_processes_that_make_the_file_at_the_same_moment_all_use_it(tmp_path):
    moment = str(time.time() + 2)
    command = [sys.executable, "-c", OPENER, str(tmp_path), moment]
    openers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]  # noqa: S603  (our own)
    for opener in openers:
        _, errors = opener.communicate()
        assert opener.returncode == 0, errors


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are read from /proc")
def test_dropped_file_is_closed(path):
    file = VectorFile(path, max_bytes=1_000_000)
    file.put({b"key": np.ones(2, dtype=np.float32)})
    assert list(file.get([b"key"])) == [b"key"]
    assert path in open_files()
    del file
    gc.collect()
    assert path not in open_files()


def open_files() -> list[Path]:
    return [link.resolve() for link in Path("/proc/self/fd").iterdir()]


async def test_another_model_under_the_same_name_is_asked_again(path, caching):
    digests = ["one", "two"]

    async def identity():
        return digests[0]

    first, second, other = CountingEmbedder(), CountingEmbedder(), CountingEmbedder()
    await caching(first, path, identity=identity).embed(["tea"], Purpose.DOCUMENT)
    await caching(second, path, identity=identity).embed(["tea"], Purpose.DOCUMENT)
    digests.pop(0)
    await caching(other, path, identity=identity).embed(["tea"], Purpose.DOCUMENT)
    assert (first.calls, second.calls, other.calls) == ([["tea"]], [], [["tea"]])


async def test_a_model_that_is_gone_is_said_to_be_and_nothing_of_it_is_returned(path, caching):
    async def identity():
        raise EmbedderUnavailableError("gone")

    await caching(CountingEmbedder(), path).embed(["tea"], Purpose.DOCUMENT)
    with pytest.raises(EmbedderUnavailableError, match="gone"):
        await caching(CountingEmbedder(), path, identity=identity).embed(["tea"], Purpose.DOCUMENT)
