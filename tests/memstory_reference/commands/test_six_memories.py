"""Every memory has every face: what a person types works the same for all six."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memstory_reference.commands.memory import ACTIONS
from memstory_reference.system_memory import SYSTEM_NAMES
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.turns.memory import TurnsMemory

KINDS = {
    "topics": TopicsMemory,
    "observations": ObservationsMemory,
    "pipeline": PipelineMemory,
    "layers": LayersMemory,
    "manager": ManagerMemory,
    "turns": TurnsMemory,
}
SAID = "My sister is Ilse."
ASKED = "Who is my sister?"


def in_json(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def texts(rows):
    return " ".join(row["text"] for row in rows)


@pytest.fixture(params=SYSTEM_NAMES)
def memory(request, typed):
    """Run a command of one of the six for ann, who said who her sister is."""
    system = ("--system", request.param, "--owner", "ann")

    def run(*words, store="s", lines=(), more=()):
        return typed(*words, *system, "--store", store, *more, lines=lines)

    run.system = request.param
    run.able = KINDS[request.param].capabilities()

    ran = run("chat", lines=[SAID])
    assert (ran.code, ran.err) == (0, "")
    return run


def test_it_is_talked_to_and_knows_in_the_next_conversation(memory):
    ran = memory("chat", lines=[ASKED, "/help", "/status"])
    assert (ran.code, ran.err) == (0, "")
    assert "Ilse" in ran.out.partition("/quit ends.")[2].partition("/search TEXT")[0]
    assert "/forget WHAT" in ran.out


LIVES = {
    "facts": [
        {
            "category": "location",
            "subject": "User",
            "predicate": "LIVES_IN",
            "object": "Graz",
            "evidence_quote": "I live in Graz",
        }
    ],
    "rules": [],
    "decision": "commit",
}


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_what_was_told_to_a_model_that_failed_is_in_the_memory(typed, openai_endpoint, monkeypatch, system):
    monkeypatch.setenv("OPENAI_BASE_URL", openai_endpoint.url)
    openai_endpoint.failures = [(400, "no idea")]
    openai_endpoint.reply = lambda body: [{"content": json.dumps(LIVES) if "response_format" in body else "Noted."}]
    words = ("--system", system, "--owner", "ann", "--store", "s")
    ran = typed("chat", *words, "--chat", "openai:tiny", lines=["I live in Graz.", "Hello!"])
    assert (ran.code, ran.err) == (1, "")
    assert "no idea" in ran.out
    assert ran.out.splitlines().count("Noted.") == 1
    assert "Graz" in texts(in_json(typed("memory", "list", "--json", *words)))


def test_it_is_listed_found_and_shown_by_the_beginning_of_an_id(memory):
    rows = in_json(memory("memory", "list", "--json"))
    assert "Ilse" in texts(rows)
    assert "Ilse" in texts(in_json(memory("memory", "search", "my sister", "--json")))
    row = next(one for one in rows if "Ilse" in one["text"])
    assert in_json(memory("memory", "show", row["id"], "--json"))["text"] == row["text"]
    assert memory("memory", "show", "nothing-of-this-name").err.count("\n") == 1


def test_what_a_conversation_forgets_is_gone_from_it_and_from_the_memory(memory):
    ran = memory("chat", lines=["/forget my sister", "/list", "/search Ilse", ASKED])
    assert "Forgotten:" in ran.out
    assert "Ilse" not in ran.out.partition("Forgotten:")[2].partition("\n")[2]
    assert "Ilse" not in memory("memory", "list").out


def test_what_is_forgotten_by_its_id_goes_with_what_repeats_it(memory):
    # A run's observation repeats no other: a talk leaves the sentence and the fact, each with an id of its own.
    told = [row["id"] for row in in_json(memory("memory", "list", "--json")) if "Ilse" in row["text"]]
    names = told if in_json(memory("memory", "status", "--json"))["ann"].get("observations") else told[:1]
    assert memory("memory", "forget", *names, "--yes").code == 0
    assert "Ilse" not in memory("memory", "list").out


def test_an_owner_is_forgotten_whole(memory):
    assert memory("memory", "forget", "--all", "--yes").code == 0
    assert "Ilse" not in memory("memory", "list").out


def test_what_is_exported_is_imported_elsewhere_and_found_there(memory):
    assert memory("memory", "export", "--output", "e.jsonl").code == 0
    rows = [json.loads(line) for line in Path("e.jsonl").read_text("utf-8").splitlines()]
    ran = memory("memory", "import", "e.jsonl", store="other")
    assert ran.out == f"Imported: {len(rows)} from e.jsonl.\n", ran.err
    there = in_json(memory("memory", "list", "--json", store="other"))
    here = in_json(memory("memory", "list", "--json"))
    assert sorted(row["text"] for row in there) == sorted(row["text"] for row in here)
    assert "Ilse" in texts(in_json(memory("memory", "search", "my sister", "--json", store="other")))


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "line 1: not JSON"), ("[1]", "line 1: found list"), ('{"kind": "fact"}', "row")],
)
def test_a_file_that_no_memory_wrote_is_refused_whole_with_its_place(memory, text, said):
    Path("wrong.jsonl").write_text(text, "utf-8")
    before = memory("memory", "list", "--json").out
    ran = memory("memory", "import", "wrong.jsonl")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("memstory-reference: wrong.jsonl: ")
    assert said in ran.err
    assert memory("memory", "list", "--json").out == before


def test_its_status_is_a_line_for_people_and_json_for_programs(memory):
    assert memory("memory", "status").out.startswith("ann: ")
    assert set(in_json(memory("memory", "status", "--json"))) == {"ann"}


NEEDED = {name: action.needs for name, action in ACTIONS.items() if action.needs}
ABLE = {
    "migrate": "manager",
    "audit": "layers",
    "feedback": "topics and observations and layers",
    "purge": "topics and layers",
    "rate": "topics and observations",
    "archive": "layers",
    "restore": "layers",
}


@pytest.mark.parametrize("action", NEEDED)
def test_an_action_is_for_the_memories_that_can_do_it_and_others_are_told_which(memory, action):
    more = {"rate": ["x", "1"], "archive": ["x"], "restore": ["x"], "migrate": ["x"]}.get(action, [])
    ran = memory("memory", action, *more)
    is_refused = f"memory {action} is for {ABLE[action]}; the " in ran.err
    assert is_refused is (memory.system not in ABLE[action].split())
    assert "target" not in ran.err
    assert (NEEDED[action] in memory.able) is not is_refused


def test_what_a_job_takes_may_stand_behind_the_options(memory):
    ran = memory("memory", "run", "dance", more=["slow=1"])
    assert (ran.code, ran.out) == (1, "")
    assert "has no job 'dance'" in ran.err


def test_a_job_that_it_has_not_is_answered_with_those_that_it_has(memory):
    ran = memory("memory", "run", "dance")
    assert (ran.code, ran.out) == (1, "")
    assert "has no job 'dance'; it has: " in ran.err


@pytest.mark.parametrize("system", SYSTEM_NAMES)
@pytest.mark.parametrize("action", [["list"], ["search", "x"], ["show", "x"], ["export"], ["status"]])
def test_a_folder_without_a_memory_is_one_line_and_stays_empty(typed, system, action):
    ran = typed("memory", *action, "--system", system, "--store", "none", "--owner", "ann")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "none: no memory is stored here" in ran.err
    assert not Path("none").exists()


def test_a_wish_to_forget_names_the_facts_that_went_and_lists_nothing_that_is_gone(typed):
    lines = ["Hi, I'm Ana and I live in Lisbon.", "I moved to Porto, I don't live in Lisbon any more."]
    ran = typed("chat", "--owner", "ana", lines=[*lines, "/forget Lisbon", "/list"])
    said, _, listed = ran.out.partition("Forgotten: ")[2].partition("\n")
    assert {"user.name", "user.location"} <= {*said.replace(",", "").split()}
    assert "Lisbon" not in listed


@pytest.mark.parametrize("system", ["topics", "layers"])
def test_a_purge_without_a_limit_says_what_is_missing(typed, system):
    typed("chat", "--system", system, "--owner", "ann", lines=[SAID])
    words = [] if system == "topics" else ["--days", "3"]
    ran = typed("memory", "purge", "--system", system, "--owner", "ann", *words)
    assert (ran.code, ran.out) == (1, "")
    assert ("no retention_days are set" if system == "topics" else "--days is for topics") in ran.err
