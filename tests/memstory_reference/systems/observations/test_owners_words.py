"""Words count by an owner's own rows: in the smallest store, and whatever others write."""

import sqlite3
from contextlib import closing

import pytest

GARDEN = "A visit to the botanical garden with long notes on orchids."
PRICES = ("Zorvane costs 12 euros", "Plimquart costs 9 euros")
TASK = "compare Zorvane and Plimquart pricing"


async def found(memory, task=TASK, owner="ann", **options):
    return [entry.observation.id for entry in await memory.find(task, owner, **options)]


async def test_exact_names_are_found_in_a_store_of_one_row(on_words, run_of):
    await on_words.store([run_of("garden", GARDEN, facts=PRICES)], "ann")
    assert await found(on_words) == ["garden"]


async def test_exact_names_are_found_where_most_rows_hold_other_words(on_words, run_of):
    rows = [run_of(f"x{number}", f"Compare pricing number {number}.") for number in range(9)]
    await on_words.store([*rows, run_of("garden", GARDEN, facts=PRICES)], "ann")
    assert "garden" in await found(on_words, top_k=10)


@pytest.mark.parametrize("rows", [1, 12])
async def test_what_another_owner_writes_changes_no_result(on_words, run_of, rows):
    others = [run_of(f"y{number}", f"Notes on the Danube {number}.", facts=("Zorvane",)) for number in range(3)]
    await on_words.store([run_of("garden", GARDEN, facts=PRICES), *others], "ann")
    before = await on_words.find(TASK, "ann", 50)
    await on_words.store([run_of(f"z{number}", "Other matters.", facts=PRICES) for number in range(rows)], "mallory")
    assert await on_words.find(TASK, "ann", 50) == before


async def test_the_rarer_word_of_an_owner_is_looked_up_first(on_words, run_of):
    common = [run_of(f"c{number:02}", f"Zorvane {number}.") for number in range(60)]
    await on_words.store([*common, run_of("rare", GARDEN, facts=("Plimquart-9 costs 9 euros",))], "ann")
    assert "rare" in await found(on_words, "Zorvane or Plimquart-9", min_sim=0.99)


async def test_repeats_of_one_task_starve_no_other(on_words, run_of):
    repeats = [
        run_of(f"s{number:02}", f"Token budget control for LLM agents {number}.", task="token budget", final_score=8)
        for number in range(60)
    ]
    related = [run_of("o1", "Budget control for databases."), run_of("o2", "Budget control for households.")]
    await on_words.store([*repeats, *related], "ann")
    assert sorted((await found(on_words, "token budget control for LLM agents", top_k=3))[1:]) == ["o1", "o2"]
    named = await found(on_words, "token budget control for LLM agents", top_k=3, min_sim=0.99)
    assert sorted(named[1:]) == ["o1", "o2"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [("Café Réunion", "cafe reunion"), ("Cafe Reunion", "CAFÉ RE\u0301UNION"), ("Đặng Thị", "Đăng thi")],
)
async def test_names_are_found_with_their_accents_and_without(on_words, run_of, said, asked):
    await on_words.store([run_of("o1", f"Visited {said}."), run_of("o2", "Visited nothing.")], "ann")
    assert await found(on_words, asked, min_sim=0.99) == ["o1"]


async def test_a_file_whose_words_an_earlier_version_indexed_is_indexed_again(open_words, run_of, tmp_path):
    memory = await open_words()
    await memory.store([run_of("garden", GARDEN, facts=PRICES)], "ann")
    await memory.store([run_of("bent", "Café Réunion.")], "bob")
    await memory.close()
    with closing(sqlite3.connect(tmp_path / "observations.sqlite3")) as file, file:
        file.executescript(
            "DROP INDEX without_checksum; ALTER TABLE observations DROP COLUMN checksum;"
            "DROP TABLE words; UPDATE about SET value = '1' WHERE name = 'schema';"
            "CREATE VIRTUAL TABLE words USING fts5(owner_tag, title, narrative, facts, task, tokenize = 'unicode61');"
            "UPDATE observations SET facts = '[' WHERE id = 'bent'"
        )
    memory = await open_words()
    assert await found(memory, min_sim=0.99) == ["garden"]
    await memory.close()
