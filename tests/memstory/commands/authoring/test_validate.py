import json
import re

import pytest

from memstory.language.reading import OUR_FAULT
from memstory.language.stories import story_of


def numbers(line):
    return [int(number) for number in re.findall(r"\b\d+\b", line)]


def test_all_errors_of_all_files_are_told_at_once(terminal):
    terminal.save("story: A\ntitle: T\nsteps: [{serach: x}, {say: hi, expect: {anser: y}}]\n", "a.story.yaml")
    terminal.save("story: B\nstory: C\ntitle: T\nsteps: [{settle: }]\n", "b.story.yaml")
    terminal.save(name="c.story.yaml")
    said = terminal.type("validate")
    assert said.code == 1
    assert [line.split(" ", 1)[0] for line in said.out.splitlines()] == [
        "a.story.yaml:3:10:",
        "a.story.yaml:3:41:",
        "b.story.yaml:2:1:",
        "3",
    ]
    assert ("'serach'" in said.out, "'search'" in said.out) == (True, True)
    assert numbers(said.out.splitlines()[-1]) == [3, 3, 1]


def breaks_at(story):
    def read(document, *rest):
        if document.tree["story"] == story:
            raise LookupError("no such thing")
        return story_of(document, *rest)

    return read


def test_a_fault_of_memstory_is_told_with_the_place_of_the_story_and_the_other_files_are_checked(terminal, monkeypatch):
    monkeypatch.setattr("memstory.language.stories.story_of", breaks_at("A"))
    terminal.save(
        "story: A\ntitle: T\nsteps: [{settle: }]\n---\nstory: B\ntitle: T\nsteps: [{add: a}]\n", "a.story.yaml"
    )
    terminal.save("story: C\ntitle: T\nsteps: [{serach: x}]\n", "b.story.yaml")
    said = terminal.type("validate")
    assert said.code == 1
    assert said.out.startswith("a.story.yaml:1:1: LookupError: no such thing")
    assert OUR_FAULT in said.out
    assert "b.story.yaml:3:10:" in said.out


def test_what_is_fine_is_counted(terminal):
    terminal.save(
        "story: A\ntitle: T\nparametrize: [{x: tea}, {x: ale}]\nsteps: [{add: '${x}', expect: {receipt: {a: 1}}}]\n"
    )
    said = terminal.type("validate")
    assert (said.code, len(said.out.splitlines()), numbers(said.out)) == (0, 1, [1, 1])


def test_an_id_that_two_files_use_is_told_with_both_places(terminal):
    terminal.save(name="a.story.yaml")
    terminal.save(name="b.story.yaml")
    said = terminal.type("validate")
    assert said.code == 1
    (line,) = [line for line in said.out.splitlines() if line.startswith("b.story.yaml:1:1: ")]
    assert ("'tea'" in line, "a.story.yaml:1:1" in line) == (True, True)


@pytest.mark.parametrize(
    ("corpus", "queries", "parts"),
    [
        (None, None, ["no file facts.jsonl", "Did you mean fact.jsonl?"]),
        ('{"id": "a"}', '{"id": "q", "text": "x", "relevant": []}', ["facts.jsonl:1: ", "'text'"]),
        ('{"id": "a", "text": "x"}', "{", ["q.jsonl:1: ", "JSON"]),
    ],
)
def test_files_of_data_are_checked_too(terminal, corpus, queries, parts):
    terminal.save("", "fact.jsonl")
    for name, text in (("facts.jsonl", corpus), ("q.jsonl", queries)):
        if text:
            terminal.save(text, name)
    terminal.save("story: Q\ntitle: T\nretrieval: {corpus: facts.jsonl, queries: q.jsonl}\n")
    said = terminal.type("validate")
    assert said.code == 1
    assert said.out.startswith("a.story.yaml:3:1: ")
    assert all(part in said.out for part in parts), said.out


def test_data_that_this_machine_lacks_is_a_note(terminal, monkeypatch):
    monkeypatch.setenv("MEMSTORY_LOCOMO", str(terminal.folder / "nowhere.json"))
    terminal.save("story: Q\ntitle: T\nretrieval: {dataset: locomo}\n")
    said = terminal.type("validate")
    assert said.code == 0
    assert "MEMSTORY_LOCOMO" in said.out
    assert numbers(said.out.splitlines()[-1]) == [1, 1, 2]


def test_a_target_that_nothing_answers_to_is_a_note(terminal):
    terminal.save("story: Q\ntitle: T\ntargets: [control:orcale]\nsteps: [{add: x}]\n")
    terminal.save("story: R\ntitle: T\ntargets: [nonesuch]\nsteps: [{add: x}]\n", "b.story.yaml")
    said = terminal.type("validate")
    assert said.code == 0
    (line,) = [line for line in said.out.splitlines() if line.startswith("b.story.yaml:1:1: under 'targets'")]
    assert "'nonesuch'" in line


def test_programs_get_json(terminal):
    terminal.save("story: A\ntitle: T\ntrials: 0\nsteps: [{add: x}]\n")
    said = terminal.type("validate", "--json")
    assert said.code == 1
    found = json.loads(said.out)
    assert (found["files"], found["stories"], found["notes"]) == (1, 0, [])
    (error,) = found["errors"]
    assert (error["where"], "'trials'" in error["message"]) == ("a.story.yaml:3:9", True)


def test_other_yaml_is_never_opened(terminal):
    terminal.save("not: [a story", "config.yaml")
    terminal.save()
    assert numbers(terminal.type("validate").out) == [1, 1]


def test_the_bundled_stories_are_valid(terminal):
    said = terminal.type("validate", "--bundled", "--json")
    assert json.loads(said.out)["errors"] == []
    assert json.loads(said.out)["stories"] > 10


@pytest.mark.parametrize(
    ("story", "place"),
    [
        ("trials: 2\npass: {at_least: 3}\nsteps: [{add: x}]", "4:18"),
        ("steps: [{add: '${unknown}'}]", "3:15"),
        ("steps: [{parallel: {times: 2, steps: [{parallel: {times: 2, steps: [{add: x}]}}]}}]", "3:40"),
        ("perturb: {distractors: 5}\nsteps: [{add: x}]", "3:1"),
        ("steps: [{add: *a}]", "3:15"),
    ],
)
def test_bad_stories_are_one_message_without_a_traceback(terminal, story, place):
    terminal.save(f"story: A\ntitle: T\n{story}\n")
    said = terminal.type("validate")
    assert (said.code, said.err) == (1, "")
    assert [line.partition(" ")[0] for line in said.out.splitlines()[:-1]] == [f"a.story.yaml:{place}:"]


def test_a_precondition_that_no_story_has_is_a_warning(terminal):
    story = "story: A\ntitle: T\nprecondition: {}\nsteps:\n  - add: x\n  - list:\n    expect: {{hits: {{count: 1}}}}\n"
    terminal.save(story.format("G111"), "a.story.yaml")
    said = terminal.type("validate")
    assert (said.code, said.out.startswith("a.story.yaml:1:1: under 'precondition': ")) == (0, True)
    assert "'G111'" in said.out
    for known in ("G1", "A"):  # a bundled one, and one that is validated too
        terminal.save(story.format(known), "a.story.yaml")
        assert "precondition" not in terminal.type("validate").out


def test_a_story_that_expects_nothing_is_a_warning(terminal):
    terminal.save("story: A\ntitle: T\nsteps: [{add: x}]\n")
    said = terminal.type("validate")
    assert said.code == 0
    assert said.out.startswith("a.story.yaml:1:1: the story expects nothing")
    assert numbers(said.out.splitlines()[-1]) == [1, 1, 1]


@pytest.mark.parametrize(
    ("step", "column"),
    [
        ("search: q, expect: {hits: {count: {ge: 0}}}", 45),
        ("search: q, expect: {hits: {not: {count: {lt: 0}}}}", None),
        ("search: q, expect: {hits: {scores: {length: {gt: -1}}}}", 55),
        ("search: q, expect: {latency_ms: {ge: 0}}", 43),
        ("tool: t, expect: {result: {fields: {a: {any: [{occurs: {x: {ge: 0}}}]}}}}", 70),
        ("say: q, expect: {tool_calls: {count: {ge: 0.0}}}", 48),
        ("search: q, expect: {hits: {count: {ge: 1}}}", None),
        ("search: q, expect: {hits: {scores: {all: {ge: 0}}}}", None),
    ],
)
def test_a_bound_that_no_count_can_miss_is_a_warning(terminal, step, column):
    terminal.save(f"story: A\ntitle: T\nsteps: [{{{step}}}]\n")
    said = terminal.type("validate")
    assert said.code == 0
    assert ("this check cannot fail" in said.out) == (column is not None), said.out
    assert column is None or said.out.startswith(f"a.story.yaml:3:{column}: this check cannot fail")


def test_a_bound_that_no_metric_can_miss_is_a_warning(terminal):
    terminal.save('{"id": "a", "text": "x"}', "f.jsonl")
    terminal.save('{"id": "q", "text": "x", "relevant": ["a"]}', "q.jsonl")
    task = "retrieval: {corpus: f.jsonl, queries: q.jsonl}\nexpect: {metrics: {recall@5: {ge: 0}}}"
    terminal.save(f"story: A\ntitle: T\n{task}\n")
    assert terminal.type("validate").out.startswith("a.story.yaml:4:31: this check cannot fail")


def test_gold_that_names_no_document_is_a_warning(terminal):
    terminal.save('{"id": "a", "text": "x"}', "f.jsonl")
    terminal.save('{"id": "q", "text": "x", "relevant": ["a", "b"]}', "q.jsonl")
    task = "retrieval: {corpus: f.jsonl, queries: q.jsonl}\nexpect: {metrics: {recall@5: 1}}"
    terminal.save(f"story: A\ntitle: T\n{task}\n")
    line = terminal.type("validate").out.splitlines()[0]
    assert (line.startswith("a.story.yaml:3:1: 1 gold label"), " q: " in line, "'b'" in line) == (True, True, True)


def test_to_allow_a_refusal_is_to_expect_nothing(terminal):
    terminal.save("story: A\ntitle: T\nsteps: [{add: x, expect: {refusal: allowed}}]\n")
    assert "the story expects nothing" in terminal.type("validate").out


def test_both_missing_files_of_a_retrieval_are_told(terminal):
    terminal.save("story: Q\ntitle: T\nretrieval: {corpus: facts.jsonl, queries: q.jsonl}\n")
    said = terminal.type("validate")
    assert said.code == 1
    assert "no file facts.jsonl" in said.out
    assert "no file q.jsonl" in said.out


def test_all_bad_lines_of_data_are_told(terminal):
    terminal.save('{"id": "a"}\n{"id": "b", "text": "x"}\n{"id": "b", "text": "y"}\n{\n', "facts.jsonl")
    terminal.save('{"id": "q", "text": "x", "relevant": 3}', "q.jsonl")
    terminal.save("story: Q\ntitle: T\nretrieval: {corpus: facts.jsonl, queries: q.jsonl}\n")
    said = terminal.type("validate")
    assert said.code == 1
    for place in ("facts.jsonl:1: ", "facts.jsonl:3: the id 'b'", "facts.jsonl:4: ", "q.jsonl:1: "):
        assert place in said.out


def test_an_expect_at_the_top_of_steps_is_one_mistake(terminal):
    terminal.save("story: A\ntitle: T\nsteps: [{add: x}]\nexpect: {hits: {cuont: 1}}\n")
    said = terminal.type("validate")
    first, last = said.out.splitlines()
    assert first.startswith("a.story.yaml:4:1: 'expect' ")
    assert numbers(last) == [1, 1, 0]


def test_two_missing_files_are_two_mistakes_and_nothing_far_is_suggested(terminal):
    terminal.save("", "q.jsonl")
    terminal.save("story: Q\ntitle: T\nretrieval: {corpus: nothere.jsonl, queries: facts.jsonl}\nmeasure: true\n")
    *lines, last = terminal.type("validate").out.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "a.story.yaml:3:1: corpus: no file nothere.jsonl",
        "a.story.yaml:3:1: queries: no file facts.jsonl",
    ]
    assert numbers(last) == [2, 1, 1]
    assert "Did you mean" not in " ".join(lines)


def test_each_bad_line_of_data_is_counted(terminal):
    terminal.save('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\nnot json\n', "c.jsonl")
    terminal.save('{"id": "q", "txt": "x", "relevant": ["a"]}\n', "q.jsonl")
    terminal.save("story: Q\ntitle: T\nretrieval: {corpus: c.jsonl, queries: q.jsonl}\nmeasure: true\n")
    lines = terminal.type("validate").out.splitlines()
    assert [line.split(" ")[1] for line in lines[:-1]] == ["c.jsonl:2:", "c.jsonl:3:", "q.jsonl:1:"]
    assert numbers(lines[-1]) == [3, 1, 1]


def test_what_a_story_covers_is_looked_up_in_the_requirements_that_are_named(terminal):
    terminal.save("| XX-98 | a memory keeps what it was given |\n| L-9 | another |", "spec.md")
    terminal.save("story: A\ntitle: T\ncovers: [XX-99, L-9]\nsteps: [{add: x, expect: {receipt: {length: 1}}}]\n")
    said = terminal.type("validate", "--requirements", "spec.md")
    assert said.code == 1
    line, last = said.out.splitlines()
    assert line.startswith("a.story.yaml:1:1: 'covers' ")
    assert all(part in line for part in ("'XX-99'", "spec.md", "'XX-98'"))
    assert numbers(last) == [1, 1, 1]
    assert terminal.type("validate").code == 0
    terminal.save("[pytest]\nmemstory_requirements = spec.md\n", "pytest.ini")
    assert "'covers' names 'XX-99'" in terminal.type("validate").out
    terminal.save("[pytest]\nmemstory_requirements = nowhere.md\n", "pytest.ini")
    refused = terminal.type("validate")
    assert (refused.code, "nowhere.md cannot be read" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("step", "column"),
    [
        ("search: q, expect: {hits: {count: {ge: 5, le: 3}}}", 45),
        ("search: q, expect: {hits: {count: {gt: 2, equals: 1}}}", 45),
        ("search: q, expect: {hits: {count: -1}}", 37),
        ("search: q, expect: {hits: {count: {lt: 0}}}", 45),
        ("search: {query: q, top_k: 2}, expect: {hits: {count: 3}}", 56),
        ("search: {query: q, top_k: 0}, expect: {hits: {count: {ge: 1}}}", 64),
        ("list: {limit: 2}, expect: {hits: {count: {gt: 2}}}", 52),
        ("search: q, expect: {hits: {empty: true, count: 3}}", 50),
        ("say: q, expect: {answer: {length: {ge: 9, lt: 4}}}", 45),
        ("search: {query: q, top_k: 2}, expect: {hits: {count: 2}}", None),
        ("search: q, expect: {hits: {count: {ge: 3, le: 3}}}", None),
        ("search: q, expect: {hits: {scores: {all: {ge: -1, le: 1}}}}", None),
    ],
)
def test_a_check_that_no_result_can_meet_is_a_warning(terminal, step, column):
    terminal.save(f"story: A\ntitle: T\nsteps: [{{{step}}}]\n")
    said = terminal.type("validate")
    lines = [line for line in said.out.splitlines() if "can never hold" in line]
    assert said.code == 0
    assert [line.partition(" ")[0] for line in lines] == ([f"a.story.yaml:3:{column}:"] if column else []), said.out


FOUND = "  - search: tea\n    expect: {hits: {count: {ge: 1}}}\n"
GONE = "  - delete: {key: t}\n  - search: tea\n    expect: {hits: {excludes: [t], text: {not: {contains: tea}}}}\n"


@pytest.mark.parametrize(
    ("head", "steps", "is_told"),
    [
        ("", GONE, True),
        ("", "  - search: tea\n    as: ben\n    expect: {hits: {empty: true}}\n", True),
        ("", "  - search: {query: tea, top_k: 3}\n    expect: {hits: {count: {le: 3}}}\n", True),
        ("", FOUND + GONE, False),
        ("", GONE + "  - settle:\n" + FOUND, False),
        ("control: {nothing: pass, because: it only avoids}\n", GONE, False),
        ("measure: true\n", GONE, False),
        ("", GONE + "  - say: What do you know of me?\n    expect: {answer: {contains: jam}}\n", False),
    ],
)
def test_a_story_that_a_memory_that_keeps_nothing_passes_is_a_warning(terminal, head, steps, is_told):
    add = "  - add: {text: tea, key: t}\n    save: {t: id}\n"
    terminal.save(f"story: A\ntitle: T\n{head}steps:\n{add}{steps}")
    said = terminal.type("validate")
    assert said.code == 0
    assert said.out.startswith("a.story.yaml:1:1: a memory that keeps nothing passes") == is_told, said.out
