from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.composition import embedders

FACTS = ["Please remember my preferred language is Elixir.", "My name is Ana."]


@pytest.fixture
def filled(typed):
    """Run commands over a store of ann's two topics and two engrams."""
    assert typed("chat", "--store", "s", "--owner", "ann", lines=FACTS).code == 0
    return typed


def in_json(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_list_shows_topics_by_name_and_then_engrams(filled):
    names = [line.split()[0] for line in filled("memory", "list", "--store", "s").out.splitlines()[2:]]
    assert names[:2] == ["user.language_preference", "user.name"]
    assert len(names) == 4
    rows = in_json(filled("memory", "list", "--store", "s", "--json"))
    assert [row["kind"] for row in rows] == ["topic", "topic", "episodic", "episodic"]
    assert set(rows[0]) == {"owner", "kind", "id", "topic", "text", "created_at", "metadata"}
    only = in_json(filled("memory", "list", "--store", "s", "--json", "--kind", "topic"))
    assert only == rows[:2]


def test_search_finds_by_meaning_with_scores_best_first(filled):
    rows = in_json(filled("memory", "search", "preferred language", "--store", "s", "--json", "--min-score", "-1"))
    assert "Elixir" in rows[0]["text"]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert len(in_json(filled("memory", "search", "name", "--store", "s", "--json", "--top-k", "1"))) <= 1
    assert filled("memory", "search", "zzz", "--store", "s").out == "No memories found.\n"


def test_show_takes_a_topic_an_id_or_the_beginning_of_an_id(filled):
    engram = in_json(filled("memory", "list", "--store", "s", "--json", "--kind", "episodic"))[0]
    for name in (engram["id"], engram["id"][:8]):
        assert in_json(filled("memory", "show", name, "--store", "s", "--json")) == engram
    assert filled("memory", "show", " USER.name", "--store", "s").out.endswith("\n\nAna\n")


@pytest.mark.parametrize("action", ["show", "forget"])
def test_an_unknown_name_is_one_line_with_the_nearest(filled, action):
    ran = filled("memory", action, "user.lang", "--store", "s")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "memstory-reference: nothing is remembered under 'user.lang'. Did you mean 'user.language_preference'?\n"
    )


@pytest.mark.parametrize("answer", [[], ["n"], [""], ["yess"]])
def test_forget_without_a_yes_forgets_nothing(filled, answer):
    ran = filled("memory", "forget", "user.name", "--store", "s", lines=answer)
    assert ran.code == 1
    assert "Ana" in ran.err
    assert ran.err.endswith("[y/N] Nothing was forgotten.\n")
    assert "Ana" in filled("memory", "show", "user.name", "--store", "s").out


def test_forget_deletes_after_a_yes_or_without_asking(filled):
    assert filled("memory", "forget", "user.name", "--store", "s", lines=["y"]).out == "Forgotten: 2.\n"
    assert filled("memory", "forget", "user.language_preference", "--store", "s", "--yes").err == ""
    assert in_json(filled("memory", "list", "--store", "s", "--json", "--kind", "topic")) == []


def test_forget_of_several_deletes_none_if_one_is_unknown(filled):
    assert filled("memory", "forget", "user.name", "user.nothing", "--store", "s", "--yes").code == 1
    assert len(in_json(filled("memory", "list", "--store", "s", "--json"))) == 4


def test_forget_all_is_the_owners_all_and_nobody_elses(filled):
    filled("chat", "--store", "s", "--owner", "bob", lines=FACTS)
    assert filled("memory", "forget", "--all", "--store", "s", "--yes").code == 1
    assert filled("memory", "forget", "--all", "--store", "s", "--owner", "ann", "--yes").out == "Forgotten: 4.\n"
    rows = in_json(filled("memory", "list", "--store", "s", "--json"))
    assert {row["owner"] for row in rows} == {"bob"}


@pytest.mark.parametrize("arguments", [[], ["user.name", "--all"]])
def test_forget_wants_names_or_all(filled, arguments):
    assert "name what to forget" in filled("memory", "forget", *arguments, "--store", "s", "--yes").err


def test_one_of_several_owners_must_be_chosen_where_one_is_meant(filled):
    filled("chat", "--store", "s", "--owner", "bob", lines=FACTS)
    table = filled("memory", "list", "--store", "s").out
    assert table.split()[0] == "owner"
    assert filled("memory", "show", "user.name", "--store", "s").err == (
        "memstory-reference: the store holds the memories of ann, bob. Choose one with --owner\n"
    )
    assert filled("memory", "show", "user.name", "--store", "s", "--owner", "bob").code == 0
    assert "Did you mean 'bob'?" in filled("memory", "list", "--store", "s", "--owner", "bobb").err


def test_export_writes_a_line_for_each_memory_to_a_new_private_file(filled):
    rows = in_json(filled("memory", "list", "--store", "s", "--json"))
    ran = filled("memory", "export", "--store", "s")
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == [row["id"] for row in rows]
    assert filled("memory", "export", "--store", "s", "--output", "e.jsonl").out == "Exported: 4 to e.jsonl.\n"
    assert Path("e.jsonl").read_text("utf-8") == ran.out
    assert Path("e.jsonl").stat().st_mode & 0o077 == 0


def test_export_overwrites_no_file(filled):
    Path("e.jsonl").write_text("older", "utf-8")
    ran = filled("memory", "export", "--store", "s", "--output", "e.jsonl")
    assert (ran.code, ran.err) == (1, "memstory-reference: e.jsonl is there already; name a new file\n")
    assert Path("e.jsonl").read_text("utf-8") == "older"


def test_an_export_that_cannot_be_written_leaves_no_half_of_it(filled, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    ran = filled("memory", "export", "--store", "s", "--output", "e.jsonl")
    assert ran.code == 1
    assert "No space left" in ran.err
    assert not Path("e.jsonl").exists()


@pytest.mark.parametrize("action", [["list"], ["search", "x"], ["show", "x"], ["forget", "x"], ["export"]])
def test_a_missing_store_is_one_line_and_stays_missing(typed, action):
    Path("empty").mkdir()
    for folder in ("nowhere", "empty"):
        ran = typed("memory", *action, "--store", folder)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"memstory-reference: {folder}: no memory is stored here.")
        assert ran.err.count("\n") == 1
    assert not Path("nowhere").exists()
    assert list(Path("empty").iterdir()) == []


def test_a_store_that_another_process_owns_is_one_line(filled):
    lock = FolderLock(Path("s"))
    lock.acquire()
    try:
        ran = filled("memory", "list", "--store", "s")
    finally:
        lock.release()
    assert ran.code == 1
    assert "s is in use by another process" in ran.err
    assert ran.err.count("\n") == 1


def test_looking_needs_no_embedding_model(filled, monkeypatch):
    monkeypatch.setattr(embedders, "make_embedder", lambda *_, **__: pytest.fail("a model was made"))
    for action in (["list"], ["show", "user.name"], ["export"], ["forget", "user.name", "--yes"]):
        assert filled("memory", *action, "--store", "s").code == 0


def test_a_store_of_another_model_is_listed(filled):
    # That it is not searched, test_reindex_makes_a_store_the_models_of_the_settings shows.
    assert filled("memory", "list", "--store", "s", "--embedder", "nomic-embed-text").code == 0


def test_a_reader_that_has_enough_is_no_error(filled):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from memstory_reference.cli import main; raise SystemExit(main())"]
    with os.fdopen(writing, "wb") as closed:
        ran = subprocess.run(  # noqa: S603  (our own command)
            [*command, "memory", "export", "--store", "s"], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert filled("memory", "list", "--store", "s").code == 0


def test_purge_deletes_engrams_that_are_too_old_and_no_topic(filled):
    assert "retention_days" in filled("memory", "purge", "--store", "s").err
    assert filled("memory", "purge", "--days", "1", "--store", "s").out == "Purged: 0.\n"
    assert in_json(filled("memory", "purge", "--days", "0", "--store", "s", "--json")) == {"purged": 2}
    assert [row["kind"] for row in in_json(filled("memory", "list", "--store", "s", "--json"))] == ["topic", "topic"]


def test_rate_changes_the_order_of_what_is_found(filled):
    engram = in_json(filled("memory", "list", "--store", "s", "--json", "--kind", "episodic"))[0]
    assert filled("memory", "rate", engram["id"][:8], "0.5", "--store", "s").out == "Rated.\n"
    assert in_json(filled("memory", "show", engram["id"], "--store", "s", "--json"))["metadata"]["reward"] == 0.5
    assert "feedback belongs to an engram" in filled("memory", "rate", "user.name", "1", "--store", "s").err


def test_reindex_makes_a_store_the_models_of_the_settings(filled):
    assert "nowhere: no memory is stored here" in filled("memory", "reindex", "--store", "nowhere").err
    embedders.make_embedder().model = "other"
    assert "memory reindex" in filled("memory", "search", "name", "--store", "s").err
    assert filled("memory", "reindex", "--store", "s").out == "Embedded again: 4.\n"
    assert "Ana" in filled("memory", "search", "my name is", "--store", "s").out
