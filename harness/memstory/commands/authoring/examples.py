"""An example of every word of the language: for the commands that list words, and for the reference pages.

The tests parse each, and hold each matcher against a value that fits and one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.target import Json

STEPS: Final[Mapping[str, str]] = {
    "say": """
- say: What language do I prefer?
  expect:
    tool_calls: [{recall_topic: {topic: user.language_preference}}]
    answer: {contains: Elixir}
""",
    "add": """
- add: The ferry leaves at nine.
  save: {ferry: id}
- add:
    - {text: Tea is steeped for two minutes., key: tea, metadata: {source: kitchen}}
    - {text: Bread bakes for an hour., kind: recipe, save: bread}
  expect:
    receipt: {items: {length: 2}}
""",
    "get": """
- add: {text: The ferry leaves at nine., key: ferry}
  save: {ferry: id}
- get: ferry
  expect: {hits: {text: {contains: nine}}}
- get: ${ferry}
- get: {key: ferry, kind: fact}
""",
    "search": """
- search: when does the ferry leave
  expect: {hits: {count: {ge: 1}}}
- search: {query: when does the ferry leave, top_k: 3, min_score: 0.5, where: {source: port}}
""",
    "list": """
- list:
  expect: {hits: {empty: true}}
- list: recipe
- list: {kinds: [recipe, fact], limit: 20}
""",
    "update": """
- add: {text: The ferry leaves at nine., key: ferry}
- update: {key: ferry, text: The ferry leaves at ten.}
  expect: {receipt: {outcomes: [updated]}}
""",
    "delete": """
- add: The ferry leaves at nine.
  save: {ferry: id}
- delete: ${ferry}
  expect: {result: true}
- delete: {all: true}
""",
    "feedback": """
- add: The ferry leaves at nine.
  save: {ferry: id}
- feedback: {id: "${ferry}", value: 1}
""",
    "context": """
- context: {query: when does the ferry leave, token_budget: 200}
  expect:
    text: {contains: nine}
    context_tokens: {le: 200}
""",
    "tool": """
- tool: {name: recall_topic, args: {topic: user.name}, caller: another-agent}
  expect: {result: {contains: Ana}}
- tool: {name: recall_topic, args: {topic: 5}}
  expect: {error: {icontains: topic}}
""",
    "tools": """
- tools:
  expect: {tools: {contains_all: [recall_topic, save_topic]}}
""",
    "run": """
- run: cleanup
- run: {job: compress, args: {older_than_days: 30}}
  expect: {result: {compressed: {ge: 1}}}
""",
    "inspect": """
- inspect: embedder
  save: {calls: calls}
- inspect: {what: log, since: "${calls}"}
- inspect: files
  expect: {data: {none_contain: [my secret]}}
""",
    "new_session": """
- new_session:
- new_session: evening
""",
    "end_session": """
- end_session:
- end_session: idle
""",
    "settle": """
- settle:
""",
    "at": """
- at: "2026-05-31T10:00:00Z"
""",
    "advance": """
- advance: 30d
- advance: {hours: 1, minutes: 5}
""",
    "restart": """
- restart:
""",
    "crash": """
- crash:
- crash:
    during:
      add: The ferry leaves at nine.
""",
    "fault": """
- fault: {embedder: down}
- search: when does the ferry leave
  expect: {error: true}
- fault: {embedder: ok}
""",
    "parallel": """
- parallel:
    times: 10
    steps:
      - add: Note ${i} of this user.
        as: user-${i}
""",
    "repeat": """
- repeat:
    times: 3
    steps:
      - add: Entry ${i} of the diary.
- search: entry
  expect:
    eventually: 5s
    hits: {count: 3}
""",
}
"""Steps, each as it stands under `steps:`."""

MATCHERS: Final[Mapping[str, tuple[str, Json, Json]]] = {
    "equals": ("{equals: 5}", 5, 6),
    "contains": ("{contains: tea}", "green tea", "coffee"),
    "icontains": ("{icontains: tea}", "Tea", "coffee"),
    "contains_all": ("{contains_all: [tea, milk]}", "tea with milk", "tea"),
    "contains_any": ("{contains_any: [tea, coffee]}", ["coffee"], ["juice"]),
    "regex": (r"{regex: '\d+ minutes'}", "in 10 minutes", "in ten minutes"),
    "starts_with": ("{starts_with: No}", "No ferry today", "There is no ferry"),
    "length": ("{length: {le: 2}}", ["a", "b"], "abc"),
    "one_of": ("{one_of: [stored, updated]}", "updated", "dropped"),
    "approx": ("{approx: {value: 0.5, tolerance: 0.01}}", 0.495, 0.52),
    "gt": ("{gt: 0}", 1, 0),
    "ge": ("{ge: 1}", 1, 0),
    "lt": ("{lt: 1}", 0.5, 1),
    "le": ("{le: 1}", 1, 1.5),
    "type": ("{type: list}", [1], "1"),
    "json_schema": ("{json_schema: {required: [id]}}", {"id": "m1"}, {"key": "tea"}),
    "occurs": ("{occurs: {tea: 2}}", "tea and more tea", "tea"),
    "all": ("{all: {starts_with: m}}", ["m1", "m2"], ["m1", "x"]),
    "any": ("{any: [{contains: tea}, {contains: coffee}]}", "coffee", "juice"),
    "not": ("{not: {contains: tea}}", "coffee", "tea"),
    "fields": ("{fields: {type: fact}}", {"type": "fact", "id": "m1"}, {"type": "rule"}),
    "same_as": ("{same_as: first}", "m1", "m2"),
    "none_contain": (
        "{none_contain: [my secret]}",
        {"containing": {"my secret": []}},
        {"containing": {"my secret": ["a.db"]}},
    ),
}
"""Matchers as written, with a value that fits and one that does not; `same_as` speaks of a saved name."""

HIT_CHECKS: Final[Mapping[str, str]] = {
    "first": "{first: ferry}",
    "includes": "{includes: [ferry, {text: {contains: nine}}]}",
    "excludes": "{excludes: ferry}",
    "order": "{order: [ferry, {key: tea}]}",
    "count": "{count: {le: 5}}",
    "empty": "{empty: true}",
    "scores": "{scores: {ferry: {ge: 0.8}}}",
    "explain": "{explain: {ferry: {similarity: {gt: 0.5}}}}",
    "text": "{text: {not: {contains: secret}}}",
    "not": "{not: {first: ferry}}",
}
"""What may stand under `hits:`, where `ferry` is a saved name."""

CALL_CHECKS: Final[Mapping[str, str]] = {
    "in_order": "[recall_topic, {save_topic: {topic: user.name}}]",
    "any_order": "{any_order: [recall_topic, save_topic]}",
    "only": "{only: [{recall_topic: {topic: {starts_with: user.}}}]}",
    "none": "{none: [save_topic]}",
    "any_of": "{any_of: [recall_topic, memory_recall]}",
    "count": "{count: {le: 2}}",
    "not": "{not: {any_order: [save_topic]}}",
}
"""What may stand under `tool_calls:`."""
