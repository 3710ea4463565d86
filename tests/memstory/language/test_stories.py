"""Files to stories: what is read, what is refused, and that all of it is said at once."""

import pytest

from memstory.language.reading import OUR_FAULT
from memstory.language.stories import (
    InvalidStory,
    StoryTable,
    load_stories,
    parse_stories,
    read_story_file,
    second_use,
    story_of,
)
from memstory.language.story import CallPattern, Story
from memstory.language.text import _Builder

INNER = "{parallel: {times: 2, steps: [{settle: }]}}"
NESTED_PARALLEL = f"steps: [{{parallel: {{times: 2, steps: [{{repeat: {{times: 2, steps: [{INNER}]}}}}]}}}}]"


def stories(text):
    found = parse_stories(text, "f.yaml")
    assert all(isinstance(story, Story) for story in found), [str(e) for s in found for e in getattr(s, "errors", ())]
    return found


def story(text):
    (only,) = stories("story: A\ntitle: T\n" + text)
    return only


def faults(text):
    (only,) = parse_stories("story: A\ntitle: T\n" + text, "f.yaml")
    assert isinstance(only, InvalidStory), only
    return [str(error) for error in only.errors]


def test_the_story_of_the_design_is_read():
    found = story(
        """
tags: [topics]
covers: [L-15, L-20]
options: {toolset: dual}
steps:
  - say: Please remember my preferred language is Elixir.
    expect:
      tool_calls: [{memory_save: {topic: user.language_preference, content: Elixir}}]
      answer: {icontains: remember}
"""
    )
    (step,) = found.steps
    assert (step.op, step.args) == ("say", {"text": "Please remember my preferred language is Elixir."})
    calls, answer = step.expect
    (call,) = calls.matchers[0].argument
    assert isinstance(call, CallPattern)
    assert call.name == "memory_save"
    assert call.args["content"][0].argument == "Elixir"
    assert (answer.field, answer.matchers[0].name, str(answer.matchers[0].mark)) == (
        "answer",
        "icontains",
        "f.yaml:11:16",
    )
    assert found.needs == {"chat", "chat.tools", "option.toolset"}


def test_vectors_beside_texts_come_to_stand_in_one_table():
    found = story(
        "vectors: {plain: [0, 1]}\n"
        "steps:\n"
        "  - add: [{text: a, vector: [1, 0]}, {text: a, vector: [1.0, 0]}]\n"
        "  - search: {query: q, vector: [.5, .5]}\n"
    )
    assert found.vectors == {"plain": (0.0, 1.0), "a": (1.0, 0.0), "q": (0.5, 0.5)}
    assert found.steps[0].args == {"items": [{"text": "a"}, {"text": "a"}]}
    assert "embedder.fixed" in found.needs


def test_two_vectors_for_one_text_are_refused_at_the_second():
    (fault,) = faults("steps:\n  - add: {text: a, vector: [1, 0]}\n  - search: {query: a, vector: [0, 1]}\n")
    assert fault.startswith("f.yaml:5:32: ")
    assert all(part in fault for part in ("'a'", "[1.0, 0.0]"))


@pytest.mark.parametrize(
    ("step", "save"),
    [
        ("{add: a, save: {x: id}}", {"x": "items.0.id"}),
        ("{add: a, save: {x: items.0.text}}", {"x": "items.0.text"}),
        ("{add: [a, {text: b, save: x}]}", {"x": "items.1.id"}),
        ("{update: {key: k, text: t}, save: {x: receipt.items.0.id}}", {"x": "items.0.id"}),
        ("{search: q, save: {x: id}}", {"x": "0.id"}),
        ("{search: q, save: {x: hits.2.score}}", {"x": "2.score"}),
        ("{list: , save: {x: 1.text}}", {"x": "1.text"}),
        ("{get: k, save: {x: hits.0.id}}", {"x": "id"}),
        ("{get: k, save: {x: text}}", {"x": "text"}),
        ("{say: a, save: {x: answer}}", {"x": "answer"}),
        ("{tool: t, save: {x: result.id}}", {"x": "result.id"}),
        ("{context: q, save: {x: text}}", {"x": ""}),
        ("{inspect: status, save: {x: data.topics.count}}", {"x": "topics.count"}),
        ("{run: purge, save: {x: result}}", {"x": ""}),
    ],
)
def test_a_saved_field_becomes_a_path_into_the_recorded_result(step, save):
    assert story(f"steps: [{step}]").steps[0].save == save


FAULTS = [
    ("steps: [{say: a, add: b}]", "3:18", ["'say'", "'add'"]),
    ("steps: [{as: bob}]", "3:9", ["add, advance"]),
    ("steps: [{search: '${x}'}]", "3:18", ["${x}"]),
    ("steps: [{add: 'n ${i}'}]", "3:15", ["${i}", "`repeat`", "`parallel`"]),
    ("steps: [{search: q, expect: {hits: {first: near}}}]", "3:44", ["'near'"]),
    ("steps: [{add: a, save: {far: id}}, {get: k, expect: {hits: {order: [far, fat]}}}]", "3:74", ["'fat'", "'far'"]),
    ("steps: [{search: q, expect: {error: true, refusal: allowed}}]", "3:43", ["'error'", "'refusal'"]),
    ("steps: [{search: q, expect: {answer: x}}]", "3:30", ["'search'", "'answer'", "hits, error, latency_ms"]),
    ("steps: [{settle: , save: {a: b}}]", "3:20", ["'settle'"]),
    ("steps: [{add: a, save: {i: id}}]", "3:18", ["'i'", "`repeat`", "`parallel`"]),
    ("steps: [{get: {kind: k}}]", "3:15", ["'id'", "'key'"]),
    ("steps: [{delete: {id: a, key: b}}]", "3:18", ["'id'", "'key'"]),
    ("steps: [{delete: {all: true, key: b}}]", "3:18", ["'all'"]),
    ("steps: [{at: '2026-05-31T10:00:00'}]", "3:14", ["'2026-05-31T10:00:00'"]),
    ("steps: [{at: noon}]", "3:14", ["'noon'", '"2026-05-31T10:00:00Z"']),
    ("steps: [{advance: 0s}]", "3:19", ["1us", "200 years"]),
    ("steps: [{wait: 4s}]", "3:16", ["3 s"]),
    ("steps: [{repeat: {times: 4, steps: [{wait: 1s}]}}]", "3:1", ["'wait'", "3 s", "4 s", "'advance'"]),
    ("steps: [{add: {text: a, ttl: 0s}}]", "3:30", ["'ttl'"]),
    ("steps: [{add: {text: a, ttl: soon}}]", "3:30", ["'ttl'", "'soon'"]),
    ("steps: [{add: {text: a, source: radio}}]", "3:33", ["'source'", "'radio'"]),
    ("steps: [{search: {query: q, as_of: noon}}]", "3:36", ["'noon'"]),
    ("steps: [{search: {query: q, where: {a: {gtt: 3}}}}]", "3:41", ["'gtt'"]),
    ("steps: [{search: {query: q, where_any: [{b: 1}, {a: {gt: x}}]}}]", "3:58", ["'gt'", "'x'"]),
    ("steps: [{fault: {part: store, mode: cut}}]", "3:37", ["model", "cut"]),
    ("steps: [{fault: {part: model, mode: nan}}]", "3:37", ["embedder", "nan"]),
    ("steps: [{parallel: {times: 2, steps: [{upgrade: }]}}]", "3:40", ["'upgrade'", "'parallel'"]),
    ("steps: [{search: {query: q, where: {a: {ge: 3, size: 1}}}}]", "3:48", ["'size'"]),
    ("steps: [{search: {query: q, where: {a: {lt: x}}}}]", "3:45", ["'lt'", "number", "'x'"]),
    ("steps: [{search: {query: q, where: {a: {in: x}}}}]", "3:45", ["'in'", "list", "'x'"]),
    ("steps: [{search: {query: q, where: {a: {exists: 1}}}}]", "3:49", ["'exists'", "1"]),
    ("steps: [{add: a}, {list: , forbid: [bb]}]", "3:28", ["'add'", "'twin'"]),
    ("steps: [{delete: {about: a, key: b}}]", "3:18", ["'about'"]),
    ("steps: [{restart: false}]", "3:19", ["'false'"]),
    ("steps: [{fault: {embedder: down, store: slow}}]", "3:17", ["{embedder: down}"]),
    (NESTED_PARALLEL, "3:68", ["'parallel'"]),
    ("steps: [{parallel: {times: 2, steps: [{crash: }]}}]", "3:40", ["'crash'", "'parallel'"]),
    ("steps: [{say: a, expect: {answer: {regex: '(a'}}}]", "3:43", ["'(a'"]),
    ("steps: [{say: a, expect: {answer: {regex: '[[a]'}}}]", "3:43", ["'[[a]'"]),
    ("steps: [{say: a, expect: {answer: {regex: '(a+)+$'}}}]", "3:43", ["'(a+)+$'"]),
    ("steps: [{tool: t, expect: {result: {json_schema: {type: 5}}}}]", "3:50", ["JSON Schema", "5"]),
    ("steps: [{tool: t, expect: {result: {contians: 5}}}]", "3:37", ["'contians'", "'contains'"]),
    ("steps: [{tool: t, expect: {result: {occurs: {of: {a: 1}}}}}]", "3:37", ["'occurs'", "'times'", "'of'"]),
    ("steps: [{tool: t, expect: {result: {gte: 5}}}]", "3:37", ["'gte'", "'ge'"]),
    ("steps: [{tool: t, expect: {result: {ge: 5, calls: 1}}}]", "3:44", ["'calls'", "'ge'"]),
    ("steps: [{say: a, expect: {error: false}}]", "3:34", ["'error: false'"]),
    ("steps: [{say: a, expect: {eventually: 5s}}]", "3:27", ["'eventually'"]),
    ("steps: [{inspect: log, expect: {data: {none_contain: [x]}}}]", "3:40", ["'none_contain'"]),
    ("steps: [{inspect: files, expect: {data: {same_as: x}}}]", "3:51", ["'x'"]),
    ("steps: [{settle: }]\ntrials: 2\npass: {at_least: 3}", "5:18", ["3", "'trials'", "2"]),
    ("steps: [{settle: }]\nrequires: [expirey]", "4:12", ["'expirey'", "'expiry'"]),
    ("steps: [{settle: }]\nexpect: {metrics: {mrr: 1}}", "4:1", ["'expect'"]),
    ("steps: [{settle: }]\nperturb: {shuffle: true}", "4:1", ["'perturb'"]),
    ("steps: [{settle: }]\nretrieval: {dataset: d}", "1:1", ["'steps'", "'retrieval'"]),
    ("tags: [a]", "1:1", ["'steps'", "'retrieval'"]),
    ("retrieval: {corpus: c}", "3:1", ["'queries'", "'dataset'", "corpus"]),
    ("retrieval: {corpus: c, queries: q, path: p}", "3:36", ["'path'", "'dataset'"]),
    ("retrieval: {preloaded: true, queries: q}", "3:13", ["'user'"]),
    ("retrieval: {preloaded: true, user: u, corpus: c, queries: q}", "3:1", ["preloaded", "'queries'", "corpus"]),
    ("retrieval: {preloaded: true, user: u}", "3:1", ["'queries'", "'dataset'", "none"]),
    ("retrieval: {preloaded: true, user: u, dataset: locomo}", "3:39", ["'queries'", "beir"]),
    ("retrieval: {preloaded: true, user: u, queries: q, distractors: d}", "3:51", ["'distractors'", "'corpus'"]),
    ("retrieval: {preloaded: true, user: u, queries: q}\nperturb: {distractors: 5}", "4:1", ["as it is", "'perturb'"]),
    ("retrieval: {corpus: c, queries: q, user: u}", "3:36", ["'user'", "'preloaded'"]),
    ("retrieval: {corpus: c, queries: q, ids: doc}", "3:36", ["'ids'", "'preloaded'"]),
    ("retrieval: {corpus: c, queries: q, seed: 1}", "3:36", ["'seed'", "'sample'"]),
    ("retrieval: {dataset: d, k: 5}\nexpect: {metrics: {recall@10: {ge: .5}}}", "4:20", ["10", "'k'", "5"]),
    ("vars: {x: 1}\ndefaults: {x: 2}\nsteps: [{settle: }]", "4:12", ["'x'", "`vars`"]),
    ("vars: {x: [1]}\nsteps: [{add: 'a ${x}'}]", "4:15", ["${x}"]),
    ("parametrize: [{row: a, x: 1}, {row: a, x: 2}]\nsteps: [{settle: }]", "3:31", ["'a'"]),
    ("vars: {x: 1}\nsteps: [{add: a, save: {x: id}}]", "4:25", ["'x'", "`vars`"]),
    ("vars: {x: 1}\nsteps: [{add: {text: a, save: x}}]", "4:9", ["'x'", "`vars`"]),
    ("defaults: {x: 1}\nsteps: [{add: a, save: {x: id}}]", "4:25", ["'x'", "`defaults`"]),
    ("parametrize: [{x: 1}]\nsteps: [{add: a, save: {x: id}}]", "4:25", ["'x'", "`parametrize`"]),
    ("steps: [{advance: {days: 1.0e+300}}]", "3:19", ["200"]),
    ("steps: [{wait: {weeks: 1.0e+300}}]", "3:16", ["3"]),
    ("steps: [{add: {text: a, ttl: {days: 1.0e+300}}}]", "3:30", ["200"]),
    (f"steps: [{{list: , expect: {{text: a, eventually: {'9' * 400}d}}}}]", "3:48", ["200"]),
    ("retrieval: {dataset: d, within: {days: 1.0e+300}}", "3:33", ["200"]),
    ("steps: [{crash: {steps: [{say: x, save: b}]}}]", "3:18", ["crash", "'steps'"]),
    ("steps: [{say: x, expect: {latency_ms: {judged: {facts: '', votes: 3}}}}]", "3:56", ["'facts'"]),
    ("steps: [{say: x, expect: {honest: {claims: x, of: y, was: z}}}]", "3:44", ["'claims'"]),
]


@pytest.mark.parametrize(("text", "place", "parts"), FAULTS)
def test_what_the_grammar_cannot_say_is_refused_with_place_and_remedy(text, place, parts):
    found = faults(text)
    at_place = [one.removeprefix(f"f.yaml:{place}: ") for one in found if one.startswith(f"f.yaml:{place}: ")]
    assert any(all(part in one for part in parts) for one in at_place), found


def test_the_messages_are_word_for_word_those_of_the_golden_file(golden):
    golden("stories.txt", {text: faults(text) for text, *_ in FAULTS})


def test_an_unknown_control_is_refused_by_those_who_know_the_controls():
    text = "story: A\ntitle: T\ncontrol: {leaky_gte: fail, because: it leaks}\nsteps: [{settle: }]"
    (refused,) = parse_stories(text, "f.yaml", ["nothing", "leaky_get"])
    assert str(refused.errors[0]).startswith("f.yaml:3:11: unknown control 'leaky_gte'. Did you mean 'leaky_get'?")
    (taken,) = parse_stories(text, "f.yaml")
    assert isinstance(taken, Story)


def test_all_mistakes_of_a_document_are_told_at_once_in_the_order_of_the_file():
    found = faults("trails: 2\nsteps:\n  - serach: x\n  - say: a\n    add: b\n  - search: ${lost}\n")
    assert [fault.split(":")[1] for fault in found] == ["3", "5", "7", "8"]


NESTED = """
steps:
  - search: {query: tea, topk: 2}
    expect: {hits: {text: {contians: tea}, first: {text: {regx: a}}}}
  - repeat:
      times: 2
      tims: 3
      steps:
        - say: hello
          expect: {answer: {lngth: 3, any: [{equls: a}, {contains: b}]}, tool_cals: []}
        - say: hello
          expect:
            answer: {any: [{contians: a}, {fields: {deep: {lenght: 3}}}]}
            tool_calls: [{recall: {t: {regx: a}}}]
        - nwe_session:
"""


def test_nested_typos_are_told_in_one_go_and_each_once():
    told = faults(NESTED)
    typos = ["topk", "contians", "regx", "tims", "lngth", "equls", "tool_cals", "contians", "lenght", "regx"]
    typos += ["nwe_session"]
    assert [[typo for typo in typos if f"'{typo}'" in one][:1] for one in told] == [[typo] for typo in typos], told


def test_what_is_left_of_a_broken_step_is_not_held_against_names_that_it_saves():
    (told,) = faults(
        """
steps:
  - add: {text: a, kye: b}
    save: {near: id}
  - search: q
    expect: {hits: {includes: [near]}}
"""
    )
    assert "'kye'" in told


def test_a_broken_step_is_not_reported_again_where_its_name_is_used():
    assert (
        len(faults("steps:\n  - ad: x\n    save: {near: id}\n  - search: q\n    expect: {hits: {first: near}}\n")) == 1
    )


@pytest.mark.parametrize("step", ["restart", "restart: {embedder: other}", "crash", "upgrade", "tamper: {remove: a}"])
def test_a_story_that_opens_a_memory_again_needs_one_that_keeps_something(step):
    assert "persistent" in story(f"steps: [{{{step if ':' in step else step + ': '}}}]").needs


def test_restart_may_be_said_to_be_true():
    assert story("steps: [{restart: true}]").steps == story("steps: [{restart: }]").steps


def test_a_fault_of_memstory_in_reading_yaml_makes_one_document_invalid(monkeypatch):
    sound = _Builder._build

    def breaks_at_the_second(builder):
        if builder._index == 2:
            raise LookupError("no such thing")
        return sound(builder)

    monkeypatch.setattr(_Builder, "_build", breaks_at_the_second)
    found = parse_stories(
        "story: A\ntitle: T\nsteps: [{add: a}]\n---\nb\n---\nstory: C\ntitle: T\nsteps: [{add: a}]\n", "f.yaml"
    )
    assert [isinstance(one, Story) for one in found] == [True, False, True]
    assert (found[1].id, str(found[1].mark)) == ("document-2", "f.yaml:4:1")
    assert OUR_FAULT in str(found[1].errors[0])


def test_a_fault_of_memstory_makes_one_document_invalid_and_says_what_to_do(monkeypatch):
    def breaks_at_the_second(document, *rest):
        if document.index == 2:
            raise LookupError("no such thing")
        return story_of(document, *rest)

    monkeypatch.setattr("memstory.language.stories.story_of", breaks_at_the_second)
    first, second, third = parse_stories(
        "story: A\ntitle: T\nsteps: [{add: a}]\n---\nstory: B\ntitle: T\nsteps: [{settle: }]\n"
        "---\nstory: C\ntitle: T\nsteps: [{add: a}]\n",
        "f.yaml",
    )
    assert [isinstance(one, Story) for one in (first, second, third)] == [True, False, True]
    assert (second.id, str(second.mark)) == ("B", "f.yaml:5:1")
    (error,) = second.errors
    assert str(error).startswith("f.yaml:5:1: LookupError: no such thing")
    assert OUR_FAULT in str(error)


def test_one_wrong_document_leaves_the_others_of_the_file_valid():
    first, second, third = parse_stories(
        "story: A\ntitle: T\nsteps: [{settle: }]\n---\n[1, 2]\n---\nstory: C\ntitle: T\nsteps: [{settle: }]\n", "f.yaml"
    )
    assert isinstance(first, Story)
    assert isinstance(third, Story)
    assert isinstance(second, InvalidStory)
    assert (second.id, str(second.mark)) == ("document-2", "f.yaml:5:1")


def test_rows_become_stories_with_values_of_their_own_types():
    found = stories(
        "story: A\ntitle: At most ${n}\ndefaults: {q: tea}\nparametrize: [{n: 1}, {n: 2, q: coffee}]\n"
        "steps: [{search: {query: '${q} please', top_k: '${n}'}}]\n"
    )
    assert [(one.row, one.title, one.steps[0].args) for one in found] == [
        ("1", "At most 1", {"query": "tea please", "top_k": 1}),
        ("2", "At most 2", {"query": "coffee please", "top_k": 2}),
    ]
    assert found[0].digest != found[1].digest


def test_rows_are_named_by_their_first_value_or_else_by_number():
    text = "story: A\ntitle: T\nparametrize: [{x: %s}, {x: %s}]\nsteps: [{say: '${x}'}]\n"
    assert [one.row for one in stories(text % ("Dvořák layout", "Qwerty"))] == ["Dvo_k_layout", "Qwerty"]
    assert [one.row for one in stories(text % ("'?'", "'!'"))] == ["1", "2"]


def test_a_mistake_that_all_rows_share_is_told_once():
    assert len(faults("parametrize: [{x: a}, {x: b}, {x: c}]\nsteps: [{serach: '${x}'}]\n")) == 1


def test_saved_names_and_the_counter_stay_for_the_run():
    found = story(
        "steps:\n  - add: a\n    save: {near: id}\n  - repeat: {times: 2, steps: [{get: '${near}'}, {add: 'n ${i}'}]}\n"
    )
    get, add = found.steps[1].steps
    assert (get.args, add.args) == ({"id": "${near}"}, {"items": [{"text": "n ${i}"}]})


def test_an_id_used_twice_in_a_file_is_invalid_the_second_time():
    text = "story: A\ntitle: T\nsteps: [{settle: }]\n---\n" * 2
    first, second = parse_stories(text, "f.yaml")
    assert isinstance(first, Story)
    assert isinstance(second, InvalidStory)
    assert str(second.errors[0]).startswith("f.yaml:5:1: ")
    assert "'A'; it was first used at f.yaml:1:1" in str(second.errors[0])


def test_duplicate_ids_are_found_across_files_but_rows_of_one_story_are_none():
    rows = "story: A\ntitle: T\nparametrize: [{x: 1}, {x: 2}]\nsteps: [{add: 'n ${x}'}]\n"
    places = {}
    assert [second_use(one, places) for one in stories(rows)] == [None, None]
    error = second_use(parse_stories(rows, "g.yaml")[0], places)
    assert str(error).startswith("g.yaml:1:1: ")
    assert "'A'; it was first used at f.yaml:1:1" in str(error)


@pytest.mark.parametrize(
    ("matcher", "message"),
    [
        ("{occurs: }", "'occurs' must be a mapping, but is nothing"),
        ("{fields: }", "'fields' must be a mapping, but is nothing"),
        ("{regex: [a]}", "'regex' must be a text, but is a list [\"a\"]"),
        ("{approx: {value: 1}}", "'approx' needs 'tolerance' (how far off it may be)."),
        ("{any: []}", "'any' must not be empty"),
        ("{any: {}}", "'any' must not be empty"),
        ("{all: {}}", "'all' must not be empty"),
        ("{not: {}}", "'not' must not be empty"),
        ("{contains: ''}", "'contains' must not be empty"),
        ("{icontains: ''}", "'icontains' must not be empty"),
        ("{contains_all: [tea, '']}", "item 2 of 'contains_all' must not be empty"),
        ("{contains_any: ['']}", "item 1 of 'contains_any' must not be empty"),
        ("{any: [tea, {}]}", "item 2 of 'any' must not be empty"),
        ("{all: [{}]}", "item 1 of 'all' must not be empty"),
        ("{json_schema: {}}", "'json_schema' must not be empty"),
        ("{regex: '.*'}", "'.*' is found in every text; for any text write {type: text}"),
        ("{not: {regex: '|tea'}}", "'|tea' is found in every text"),
    ],
)
@pytest.mark.parametrize("around", ["{fields: {a: %s}}", "{a: %s}", "{a: {b: %s}}", "{all: {a: %s}}"])
def test_a_half_typed_matcher_is_one_message_however_deep_it_is(matcher, message, around):
    (fault,) = faults(f"steps: [{{tool: t, expect: {{result: {around % matcher}}}}}]")
    assert message in fault


def test_no_scores_at_all_are_no_check_of_them():
    (fault,) = faults("steps: [{search: t, expect: {hits: {scores: {}}}}]")
    assert "'scores' must not be empty" in fault


@pytest.mark.parametrize(
    "matcher", ["{length: '${n}'}", "{a: {approx: '${n}'}}", "{one_of: '${n}'}", "{a: {type: '${n}'}}", "{a: '${n}'}"]
)
def test_a_saved_value_may_stand_for_the_argument_of_a_matcher(matcher):
    found = story(f"steps: [{{tool: t, save: {{n: result}}}}, {{tool: t, expect: {{result: {matcher}}}}}]")
    assert len(found.steps[1].expect) == 1


@pytest.mark.parametrize(
    ("content", "place", "part"),
    [(b"", "1:1", "no story"), (b"story: A\ntitle: \xff\n", "2:8", "UTF-8")],
)
def test_a_file_without_a_readable_story_is_one_invalid_story(tmp_path, content, place, part):
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    (found,) = load_stories(path, "f.yaml")
    assert isinstance(found, InvalidStory)
    assert str(found.errors[0]).startswith(f"f.yaml:{place}: ")
    assert part in str(found.errors[0])


def test_a_file_that_is_not_there_is_one_invalid_story(tmp_path):
    (found,) = load_stories(tmp_path / "none.yaml", "none.yaml")
    assert str(found.errors[0]).startswith("none.yaml:1:1: the file cannot be read")


def test_the_rest_of_a_story_is_taken_as_written():
    found = story(
        "targets: [topics]\nmodel: [{reply: hi}]\nsettle: manual\ntrials: 5\npass: {at_least: 4}\nnotes: n\n"
        "control: {nothing: pass, because: it is so}\nrequires: [expiry]\nsteps: [{crash: {during: {add: a}}}]\n"
    )
    assert (found.targets, found.settles, found.notes) == (("topics",), False, "n")
    assert (found.trials.count, found.trials.at_least) == (5, 4)
    assert (found.control, found.control_because) == ({"nothing": "passed"}, "it is so")
    assert found.needs == {"add", "crash", "expiry", "llm.scripted", "persistent"}
    assert found.steps[0].steps[0].args == {"items": [{"text": "a"}]}


def test_a_retrieval_story_is_read_with_its_bounds():
    found = story(
        "retrieval: {corpus: c.jsonl, queries: q.jsonl}\nperturb: {distractors: [0, 200]}\n"
        "expect: {metrics: {mrr: {ge: .8}}}"
    )
    assert (found.retrieval.corpus, found.retrieval.k) == ("c.jsonl", 10)
    assert found.needs == {"add", "search"}
    assert str(found.expect[0].matchers[0].argument["mrr"][0].mark) == "f.yaml:5:26"


def test_a_preloaded_retrieval_asks_and_adds_nothing():
    found = story("retrieval: {preloaded: true, user: u, ids: doc, queries: q.jsonl, sample: 20.0, seed: 7}")
    one = found.retrieval
    assert (one.preloaded, one.user, one.ids, one.sample, one.seed) == (True, "u", "doc", 20, 7)
    assert found.needs == {"preloaded", "search"}


def test_texts_that_no_file_may_hold_are_told_to_the_runner():
    found = story("steps: [{inspect: files, expect: {data: {none_contain: [secret]}}}]")
    assert found.steps[0].args == {"what": "files", "search_for": ["secret"]}


def test_a_story_says_its_harm_and_a_readable_name():
    found = story("harm: leak\nslug: owner-isolation\nsteps: [{add: x}]")
    assert (found.harm, found.slug) == ("leak", "owner-isolation")
    assert "harm" in faults("harm: sad\nsteps: [{add: x}]")[0]
    assert "slug" in faults("slug: Not Readable\nsteps: [{add: x}]")[0]


TABLE = """\
story: A
title: ${drink} is found
defaults: {k: 3}
parametrize: {file: rows.jsonl}
steps: [{search: {query: '${drink}', top_k: '${k}'}}]
"""


@pytest.fixture
def table(tmp_path):
    """Return a function that loads a story whose rows are these lines of a file."""

    def load(*lines, text=TABLE, read=load_stories):
        (tmp_path / "a.story.yaml").write_text(text, "utf-8")
        (tmp_path / "rows.jsonl").write_bytes(b"".join(line.encode() + b"\n" for line in lines))
        return list(read(tmp_path / "a.story.yaml", "a.story.yaml"))

    return load


def test_rows_of_a_file_make_the_stories_that_the_same_rows_in_the_document_make(table):
    inline = parse_stories(TABLE.replace("{file: rows.jsonl}", "[{drink: tea}, {drink: a b, k: 1}]"), "a.story.yaml")
    found = table('{"drink": "tea"}', "", '{"drink": "a b", "k": 1}')
    assert [(one.id, one.row, one.title) for one in found] == [(one.id, one.row, one.title) for one in inline]
    assert [one.steps[0].args for one in found] == [one.steps[0].args for one in inline]
    assert [one.row for one in found] == ["tea", "a_b"]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (['{"drink": "tea"}', '{"drink": "tea"}'], ["1", "2"]),
        (['{"drink": "?"}', '{"drink": "tea"}'], ["1", "2"]),
        (['{"drink": "tea", "row": "x"}', '{"drink": "tea"}'], ["x", "2"]),
        (['{"drink": "tea", "row": "x"}', '{"drink": "milk"}'], ["x", "milk"]),
    ],
)
def test_rows_of_a_file_are_named_as_rows_of_a_document(table, lines, names):
    assert [one.row for one in table(*lines)] == names


def test_another_value_in_a_row_of_a_file_is_another_story(table):
    (one, _), (same, other) = (
        table('{"drink": "tea"}', '{"drink": "milk"}'),
        table('{"drink": "tea"}', '{"drink": "m"}'),
    )
    assert one.digest == same.digest
    assert other.digest != _.digest


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("[1]", "allowed is a JSON object"),
        ("{}", "allowed is a JSON object with at least one name"),
        ('{"drink": ', "not a JSON object"),
        ('{"dr ink": 1}', "'dr ink' is not a valid name"),
        ('{"row": "a b", "drink": "x"}', "'row' is 'a b', which is not a valid row id"),
        ('{"drink": "x", "row": "tea"}', "the row 'tea' is in line 1 already"),
        ('{"drink": 1, "drink": 2}', "a field is given twice"),
    ],
)
def test_a_bad_line_of_rows_is_one_message_with_its_number(table, line, part):
    (found,) = table('{"drink": "tea"}', "", line)
    (error,) = found.errors
    assert str(error).startswith("a.story.yaml:4:21: rows.jsonl:3: ")
    assert part in error.message


def test_of_many_bad_lines_the_first_are_told_and_the_others_counted(table):
    (found,) = table('{"drink": "tea"}', *["[]"] * 30)
    assert len(found.errors) == 21
    assert any(error.message == "and 10 more lines of rows.jsonl" for error in found.errors)


def test_a_row_that_does_not_fit_the_story_is_invalid_by_itself(table):
    first, wrong, last = table('{"drink": "tea"}', '{"drunk": 1}', '{"drink": "milk"}')
    assert [type(one) for one in (first, wrong, last)] == [Story, InvalidStory, Story]
    assert wrong.id == "A[1]"
    assert all("rows.jsonl:2" in error.message for error in wrong.errors)


def test_a_mistake_of_the_document_is_told_once_however_many_rows_there_are(table):
    (found,) = table(*(f'{{"drink": "tea {n}"}}' for n in range(9)), text=TABLE.replace("search", "serach"))
    assert (found.id, len(found.errors)) == ("A", 1)


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("none.jsonl", "the rows in none.jsonl cannot be read: No such file"),
        (".", "the rows in . cannot be read: Is a directory"),
        ("../out.jsonl", "outside the stories' root"),
        ("empty.jsonl", "empty.jsonl holds no row"),
    ],
)
def test_a_file_of_rows_that_cannot_be_is_one_message(table, tmp_path, file, part):
    (tmp_path / "empty.jsonl").write_bytes(b"\n\n")
    (found,) = table("", text=TABLE.replace("rows.jsonl", file))
    (error,) = found.errors
    assert str(error).startswith("a.story.yaml:4:21: ")
    assert part in error.message


def test_a_text_in_no_file_has_no_file_of_rows():
    (found,) = parse_stories(TABLE, "a.story.yaml")
    assert "in rows.jsonl are looked up beside the story's file" in found.errors[0].message


def test_a_table_makes_only_the_stories_that_are_asked_for(table, monkeypatch):
    (found,) = table(*(f'{{"drink": "tea {n}"}}' for n in range(9)), read=read_story_file)
    assert isinstance(found, StoryTable)
    made = []

    def noted(document, row, *rest):
        made.append(row.name)
        return story_of(document, row, *rest)

    monkeypatch.setattr("memstory.language.stories.story_of", noted)
    assert [(place, one.row) for place, one in found.stories({2, 7})] == [(2, "tea_2"), (7, "tea_7")]
    assert made == ["tea_2", "tea_7"]
    assert found.rows.count == 9


@pytest.mark.parametrize(
    ("more", "uniform"), [("", True), ("targets: ['${drink}']\n", False), ("measure: '${c}'\n", False)]
)
def test_a_table_knows_whether_its_rows_choose_their_targets(table, more, uniform):
    (found,) = table('{"drink": "tea", "c": true}', text=TABLE + more, read=read_story_file)
    assert found.is_uniform is uniform
