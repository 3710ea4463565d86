"""The loop that kills writers finds what it is there to find."""

import pytest

HONEST = """
import asyncio, os
from itertools import count

OWNERS = ("ann",)

async def write(folder, done, acknowledge):
    for step in count(done["ann"]):
        with open(folder, "a") as file:
            file.write(f"{step}\\n")
            file.flush()
        acknowledge("ann", step)
        await asyncio.sleep(0.01)

async def verify(folder, done):
    with open(folder) as file:
        kept = {int(line) for line in file}
    assert set(range(done["ann"])) <= kept
"""
LOSES = HONEST.replace("file.write", "str")
ENDS = HONEST.replace("        await asyncio.sleep(0.01)", "        return")


def test_a_store_that_keeps_what_it_acknowledged_survives(kill_writers, tmp_path):
    (tmp_path / "writer.py").write_text(HONEST)
    assert kill_writers(str(tmp_path / "writer.py"), tmp_path / "store", 2)["ann"] >= 2


@pytest.mark.parametrize(
    ("writer", "said"), [(LOSES, "after kill 1, acknowledged .*: the check failed"), (ENDS, "a writer ended by itself")]
)
def test_a_write_that_is_lost_and_a_writer_that_ends_are_failures(kill_writers, tmp_path, writer, said):
    (tmp_path / "writer.py").write_text(writer)
    with pytest.raises(AssertionError, match=said):
        kill_writers(str(tmp_path / "writer.py"), tmp_path / "store", 2)
