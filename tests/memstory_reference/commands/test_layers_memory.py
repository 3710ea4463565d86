from __future__ import annotations

import json
from pathlib import Path

import pytest

FACTS = ["I live in Vienna.", "My sister is Ana.", "From now on answer briefly."]


@pytest.fixture
def filled(typed):
    """Run commands over ann's two facts and her rule, and bob's one fact."""
    for user, lines in (("ann", FACTS), ("bob", ["I live in Oslo."])):
        assert typed("chat", "--system", "layers", "--user-id", user, lines=lines).code == 0

    def run(action, *arguments, user="ann", lines=()):
        return typed("memory", action, "--system", "layers", "--user-id", user, *arguments, lines=lines)

    return run


def in_json(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def ids(filled, *options, user="ann"):
    return {row["text"]: row["id"] for row in in_json(filled("list", "--json", *options, user=user))}


def test_list_shows_an_owners_records_as_a_prompt_would(filled):
    out = filled("list").out
    assert '[location] User LIVES_IN Vienna — "I live in Vienna."' in out
    assert "[rule] Answer briefly." in out
    assert "Oslo" not in out
    rows = in_json(filled("list", "--json", "--kind", "procedural"))
    assert [(row["kind"], row["owner"], row["metadata"]["standing"]) for row in rows] == [
        ("procedural", "ann", "active")
    ]


def test_search_finds_an_owners_own_with_scores(filled):
    rows = in_json(filled("search", "live Vienna", "--json"))
    assert "Vienna" in rows[0]["text"]
    assert rows[0]["score"] > 0
    assert len(in_json(filled("search", "live Vienna sister Ana", "--json", "--top-k", "1"))) == 1
    assert "Vienna" not in filled("search", "live Vienna", user="bob").out


def test_show_takes_an_id_or_its_beginning(filled):
    (identifier, *_) = ids(filled).values()
    for name in (identifier, identifier[:8]):
        assert in_json(filled("show", name, "--json"))["id"] == identifier
    assert f"id: {identifier}" in filled("show", identifier).out


def test_what_is_archived_is_in_no_search_until_it_is_restored(filled):
    home = ids(filled)['[location] User LIVES_IN Vienna — "I live in Vienna."']
    assert filled("archive", home[:8]).out == "Archived: 1.\n"
    assert "Vienna" not in filled("search", "live Vienna").out + filled("list").out
    assert "(archived) [location]" in filled("list", "--archived").out
    assert "archived 1" in filled("status").out
    again = filled("archive", home)
    assert (again.code, again.out) == (1, "Archived: 0.\n")
    assert "is not active; nothing was done with it" in again.err
    assert in_json(filled("restore", home, "--json")) == {"restored": [home]}
    assert "Vienna" in filled("search", "live Vienna").out


@pytest.mark.parametrize("action", ["forget", "delete"])
def test_what_is_forgotten_is_shown_first_and_needs_a_yes(filled, action):
    (identifier, *_) = ids(filled).values()
    ran = filled(action, identifier, lines=["n"])
    assert (ran.code, ran.out) == (1, "")
    assert "Forget this for good? [y/N] Nothing was forgotten." in ran.err
    assert filled(action, identifier, lines=["y"]).out == "Forgotten: 1.\n"
    assert identifier not in ids(filled).values()


def test_a_whole_owner_is_forgotten_and_no_other(filled):
    ran = filled("forget", "--all", lines=["no"])
    assert "Forget these 3 for good?" in ran.err
    assert len(in_json(filled("forget", "--all", "--yes", "--json"))["forgotten"]) == 3
    assert filled("list").out == "Nothing is remembered.\n"
    assert "Oslo" in filled("list", user="bob").out


def test_export_holds_everything_of_one_owner_and_goes_to_a_new_file_alone(filled):
    exported = [json.loads(line) for line in filled("export").out.splitlines()]
    assert {row["type"] for row in exported} == {"semantic", "procedural"}
    assert "Oslo" not in json.dumps(exported)
    assert filled("export", "--output", "e.json").out == "Exported: 3 to e.json.\n"
    assert [json.loads(line) for line in Path("e.json").read_text("utf-8").splitlines()] == exported
    assert Path("e.json").stat().st_mode & 0o077 == 0
    again = filled("export", "--output", "e.json")
    assert (again.code, "is there already" in again.err) == (1, True)


def test_status_has_the_labels_that_people_read(filled):
    # C-02, C18
    assert filled("status").out == (
        "ann: facts 2, sessions 0, rules 1; held 0; mode local; embedder all-MiniLM-L6-v2\n"
    )
    status = in_json(filled("status", "--json"))["ann"]
    assert status["counts"] == {"semantic": 2, "episodic": 0, "procedural": 1}


def test_another_owners_record_is_no_record(filled):
    # SEC-6
    (theirs,) = ids(filled, user="bob").values()
    for action, options in (("show", ()), ("forget", ("--yes",)), ("archive", ()), ("restore", ())):
        ran = filled(action, theirs, *options)
        assert (ran.code, ran.out) == (1, "")
        assert "nothing is remembered under" in ran.err
    assert list(ids(filled, user="bob").values()) == [theirs]


def test_a_thread_without_a_user_is_an_owner_too(typed):
    typed("chat", "--system", "layers", "--thread-id", "t1", lines=FACTS)
    listed = typed("memory", "list", "--system", "layers", "--thread-id", "t1", "--json")
    assert {row["owner"] for row in in_json(listed)} == {None}
    assert "t1" not in listed.out


def test_a_wrong_kind_and_a_condition_that_layers_lack_are_one_line(filled):
    assert "kind 'topic' is unknown; allowed: semantic, episodic, procedural" in filled("list", "--kind", "topic").err
    ran = filled("search", "Vienna", "--min-score", "0")
    assert (ran.code, "'search.min_score'" in ran.err, ran.err.count("\n")) == (1, True, 1)


@pytest.mark.usefixtures("filled")
def test_layers_want_a_name_or_a_conversation(typed):
    ran = typed("memory", "list", "--system", "layers")
    assert (ran.code, "say whose with --owner, or with --thread-id" in ran.err) == (1, True)


@pytest.mark.parametrize("action", ["archive", "restore"])
def test_the_topics_memory_has_a_status_and_no_archive(typed, action):
    typed("chat", "--owner", "ann", lines=["My name is Ana."])
    assert typed("memory", "status").out == "ann: topics 1, episodic 1\n"
    ran = typed("memory", action, "user.name")
    assert (ran.code, ran.out) == (1, "")
    assert f"memory {action} is for layers; the topics memory has no such thing" in ran.err


def test_forget_without_a_name_says_what_to_type(filled):
    for names in ((), ("x", "--all")):
        assert "name what to forget, or say --all" in filled("forget", *names).err
