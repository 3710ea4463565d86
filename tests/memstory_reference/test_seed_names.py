"""Every function, tool, subject, setting, command and endpoint that the five descriptions name is here.

The reference memories were built from five descriptions, which docs/requirements.md retells. Each row has the name
that a description gives, where it is here, and, if it has another name here, why. Every call here takes the owner
besides, which no description has.
"""

from __future__ import annotations

import argparse
import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from memstory.contract.values import ToolSchema
from memstory_reference.bus.subjects import QUERY_RECEIVED, RESPONSE_GENERATION, TOOL_SCHEMA, tool_request, tool_result
from memstory_reference.cli import make_parser
from memstory_reference.commands.serve import MemoryWeb
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.topics.tools import ALIASES, TopicTools

TOPICS = """
MemoryService | .memory_service:MemoryService
write_topic(topic, content) | .memory_service:MemoryService.write_topic
recall_topic(topic) | .memory_service:MemoryService.recall_topic
write_episodic(content, metadata) | .memory_service:MemoryService.write_episodic
search_episodic(query, top_k) | .memory_service:MemoryService.search_episodic
MemoryAgent | .memory_agent:MemoryAgent
GeneratorAgent | .agent:GeneratorAgent
_handle_query(query) | .agent:GeneratorAgent.ask | public: programs ask too
_make_envelope | ports:Envelope | a value, which needs no maker
MemoryAgent.run | .memory_agent:MemoryAgent.start | asynchronous, and no thread: it returns when it hears
MemoryRecallTool | .tools:MEMORY_RECALL | a tool is a schema and a function, not a class
MemorySaveTool | .tools:MEMORY_SAVE | a tool is a schema and a function, not a class
memory_recall(topic, query) | .tools:MEMORY_RECALL
memory_save(topic, content) | .tools:MEMORY_SAVE
save_topic(topic, content) | .tools:SAVE_TOPIC
recall_topic(topic) | .tools:RECALL_TOPIC
save_memory(content) | .tools:SAVE_MEMORY
search_memory(query) | .tools:SEARCH_MEMORY
recall_memory | alias memory_recall | LF-2: prose for memory_recall, accepted in the pair alone
save_memory | alias memory_save | LF-2: prose for memory_save, accepted in the pair alone
tool.request.memory_recall | subject
tool.result.memory_recall | subject
tool.request.memory_save | subject
tool.result.memory_save | subject
tool.request.save_topic | subject
tool.result.save_topic | subject
tool.request.recall_topic | subject
tool.result.recall_topic | subject
tool.request.save_memory | subject
tool.result.save_memory | subject
tool.request.search_memory | subject
tool.result.search_memory | subject
tool.schema | subject
response.generation | subject
query.received | subject
chroma_path | setting of topics
collection | setting of topics
embedding_model | setting of topics
top_k | setting of topics
min_score | setting of topics
run_local.py | composition.topics:open_topics | participants are started together by one function, and by `chat`
RESPONSE_GENERATION | bus.subjects:RESPONSE_GENERATION
"""

OBSERVATIONS = """
get_context(task, top_k) | .memory:ObservationsMemory.get_context
extract_keywords | text.words:extract_keywords
rank_and_merge | .ranking:rank_candidates | candidates come merged by id: ranking them is what is left
format_context | .research:injection | makes the text for any planner, from observations alone
_rank_score(sim) | .ranking:rank | public, and returns the three numbers of the rank too
sim = 1.0 - (dist / 2.0) | .ranking:similarity | the description has the expression without a name
q_adjust | .ranking:Rank.q_adjust
Observation(id, title, narrative, facts, task, task_type, final_score, timestamp) | .observation:Observation
compress_and_store(task, output, task_type, final_score) | .memory:ObservationsMemory.compress_and_store
compress_and_store model | composition.observations:open_observations | the model is chosen where a memory is opened
COMPRESS_PROMPT | .compression:compression_prompt | OF-13: the described template cannot be formatted
generate_run_id | adapters.machine:random_id | OF-15: one source of ids for all; a run may bring its own
store_sqlite | .memory:ObservationsMemory.store | OF-16: both indexes are written by one operation
Plan.prior_work | .research:ResearchPlan.prior_work | layers plan writes, and no two classes share a name
memory.py | command memory list | one program for all memories: the action lists
memory.py --search | command observations search | one program for all memories: the action searches
inspect_run.py --rate | command memory rate | one program for all memories: the action rates
"""

PIPELINE = """
ingest(text, user_id, session_id, memory_type_hint) | .memory:PipelineMemory.ingest
recall(query, user_id, top_k, token_budget, memory_types) | .memory:PipelineMemory.recall
include_compressed | parameter .memory:PipelineMemory.recall
MemoryType | .chunk:ChunkType | the manager has a `MemoryType`, and no two classes share a name
MemoryType.SEMANTIC | .chunk:ChunkType.SEMANTIC | the manager has a `MemoryType`, and no two classes share a name
MemoryType.EPISODIC | .chunk:ChunkType.EPISODIC | the manager has a `MemoryType`, and no two classes share a name
MemoryType.PROCEDURAL | .chunk:ChunkType.PROCEDURAL | the manager has a `MemoryType`, and no two classes share a name
MemoryType.WORKING | .chunk:ChunkType.WORKING | the manager has a `MemoryType`, and no two classes share a name
MemoryChunk(content, memory_type, importance, compressed) | .chunk:MemoryChunk
RecallResult(memories, total_tokens, budget_used) | .chunk:RecallResult
encode_batch(texts) | ports:Embedder.embed | one embedder for all memories, which only takes batches
count_tokens | text.words:count_tokens
MAX_CHUNK_TOKENS | .settings:PipelineSettings.max_chunk_tokens | a setting
MIN_CHUNK_TOKENS | .settings:PipelineSettings.min_chunk_tokens | a setting
top_k_candidates | .settings:PipelineSettings.candidates_factor | the setting is the factor, as `top_k * 4` has it
reranker_enabled | .settings:PipelineSettings.reranker_enabled
compression_threshold | .settings:PipelineSettings.compression_threshold
sessions_to_compress | .settings:PipelineSettings.sessions_to_compress
"""

LAYERS = """
MemoryStore | .layers_store:LayersStore | it keeps sessions, too
aput | .layers_store:LayersStore.aput
aput_batch | .layers_store:LayersStore.aput_batch
asearch_similar | .layers_store:LayersStore.asearch_similar
alatest | .layers_store:LayersStore.alatest
OpenCouchMemoryStore | .layers_store:LayersStore | OpenCouch is the product of the description, not ours
WorkingMemoryEntry | .records:WorkingMemoryEntry
SemanticWorkingMemoryEntry | .records:SemanticWorkingMemoryEntry
format_working_memory_entries | .records:format_working_memory_entries
working_memory | .records:WORKING_MEMORY | the key of a state, as a constant
_merge_dicts | .sessions:merge_dicts | public, as the description names it
load_memory_for_turn | .memory:LayersMemory.load_memory_for_turn
SessionMemoryBuffer | .records:SessionMemoryBuffer
MemoryMode | .settings:MemoryMode
MemoryMode.INCOGNITO | .settings:MemoryMode.INCOGNITO
MemoryMode.LOCAL | .settings:MemoryMode.LOCAL
MemoryMode.SYNCED | .settings:MemoryMode.SYNCED
EmbeddingProvider | ports:Embedder | one embedder for all memories
NullEmbeddingProvider | .recall:Embeddings | CF-5: without an embedder there is no vector at all
resolve_owner_id | .identity:resolve_owner_id
hash_session_id | .identity:hash_session_id
iso_now | .identity:iso_now
ProceduralProfile | .settings:LayersSettings.rule_cap | rules are rows like any other, capped as they are written
CrisisLogRecord | .logs:CrisisLogRecord
CrisisLogBackend | .logs:Log | the log of crises and that of feedback are one class
FeedbackLabel | .logs:FeedbackLabel
FeedbackSource | .logs:FeedbackSource
SessionFeedbackRecord | .logs:SessionFeedbackRecord
SessionFeedbackBackend | .logs:Log | the log of crises and that of feedback are one class
/api/memory/status | endpoint GET
/end | .memory:LayersMemory.end | `/end` in the chat, POST /api/memory/end over HTTP
--memory-mode | command chat
--user-id | command chat
"""

MANAGER = """
MemoryManager | .manager:MemoryManager
MemoryManager(context_window_size) | setting of manager
MemoryManager(persist_path) | setting path of manager | the description's own settings call it `path`
MemoryType | .memories:MemoryType
MemoryType.CONVERSATION | .memories:MemoryType.CONVERSATION
MemoryType.FACT | .memories:MemoryType.FACT
MemoryType.CONTEXT | .memories:MemoryType.CONTEXT
Memory(id, content, memory_type, created_at, metadata) | .memories:Memory
Memory.expires_at | .memories:expires_at | MF-2: the end of a day depends on the zone of the settings
SearchResult(memory, score) | .memories:SearchResult
store(content, memory_type, metadata) | .manager:MemoryManager.store
search(query, memory_type, limit, min_score) | .manager:MemoryManager.search_memories | `search` is what all six have
forget(memory_id) | .manager:MemoryManager.forget
cleanup_expired | .manager:MemoryManager.cleanup_expired
remember_fact(content, metadata) | .manager:MemoryManager.remember_fact
remember_conversation(content, metadata) | .manager:MemoryManager.remember_conversation
set_context(key, value) | .manager:MemoryManager.set_context
get_context(key) | .manager:MemoryManager.get_context
add_to_context_window | .agent:ContextWindow.add | each session has a window of its own
get_context_window | .agent:ContextWindow.entries | each session has a window of its own
clear_context_window | .agent:ContextWindow.clear | each session has a window of its own
search_memories(query, memory_type, limit) | .agent:SEARCH
store_memory(content, memory_type, metadata) | .agent:STORE
forget_memory(memory_id) | .agent:FORGET
ReachyAgentLoop | .agent:ManagerAgent | Reachy is the product of the description, not ours
startup | .memory:ManagerMemory.open | the first cleanup and the hourly ones are one thing
process(user_input) | .agent:ManagerAgent.process
path | setting of manager
context_window_size | setting of manager
embedding_model | setting of manager
cleanup_interval | setting of manager
"""


SEEDS = {
    "topics": TOPICS,
    "observations": OBSERVATIONS,
    "pipeline": PIPELINE,
    "layers": LAYERS,
    "manager": MANAGER,
}
"""The tables; a place that starts with a dot is in the package of the memory itself."""


class Named(NamedTuple):
    """A name of a description with its place here; `reason` only where the name is another one."""

    name: str
    parameters: tuple[str, ...]
    place: str
    reason: str


def rows(seed: str) -> list[Named]:
    found = []
    for line in SEEDS[seed].strip().splitlines():
        full, place, reason = [part.strip() for part in (*line.split(" | "), "")[:3]]
        name, _, listed = full.partition("(") if re.fullmatch(r"\w+\(.*\)", full) else (full, "", "")
        place = re.sub(r"(^|(?<= ))\.(?=\w+)", f"systems.{seed}.", place)
        found.append(Named(name, tuple(re.findall(r"\w+", listed)), place, reason))
    return found


EVERY = [pytest.param(one, id=f"{seed}-{one.name}") for seed in SEEDS for one in rows(seed)]
SETTINGS = {"topics": TopicsSettings.default, "manager": ManagerSettings.default}


def here(place: str) -> Any:
    """Return what lies at `module:name.name`."""
    module, _, path = place.partition(":")
    found: Any = import_module(f"memstory_reference.{module}")
    for name in path.split("."):
        known = {field.name: field for field in fields(found)} if is_dataclass(found) else {}
        found = known[name] if name in known else getattr(found, name)
    return found


def accepted(found: Any) -> set[str]:
    """Return the names of what it takes."""
    return (
        set(found.parameters["properties"])
        if isinstance(found, ToolSchema)
        else set(inspect.signature(found).parameters)
    )


def called(found: Any) -> str:
    return str(getattr(found, "name", None) or getattr(found, "__name__", ""))


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (inner,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)] or [None]
    return {} if inner is None else dict(inner.choices)


@pytest.mark.parametrize("named", EVERY)
def test_a_name_of_a_description_is_here_and_takes_what_is_described(named):
    kind, _, rest = named.place.partition(" ")
    match kind:
        case "subject":
            tools = [one.name for pair in ("single", "dual") for one in TopicTools(None, pair, "").specs]
            subjects = [one for tool in tools for one in (tool_request(tool), tool_result(tool))]
            subjects += [TOOL_SCHEMA, RESPONSE_GENERATION, QUERY_RECEIVED]
            assert named.name in subjects
        case "setting":
            key, _, system = rest.rpartition("of ")
            assert hasattr(SETTINGS[system](), key.strip() or (*named.parameters, named.name)[0])
        case "alias":
            assert ALIASES["dual"][named.name] == rest
        case "command":
            command, _, action = rest.partition(" ")
            parser = commands(make_parser())[command]
            assert action in commands(parser) if action else named.name in parser._option_string_actions
        case "endpoint":
            assert (rest, named.name) in {
                (method, path) for method, path, _ in MemoryWeb(LayersMemory.__new__(LayersMemory)).acts()
            }
        case "parameter":
            assert named.name in accepted(here(rest))
        case _:
            found = here(named.place)
            assert set(named.parameters) <= accepted(found) if named.parameters else found is not None


@pytest.mark.parametrize("named", EVERY)
def test_another_name_than_the_described_one_has_a_reason_and_the_same_name_needs_none(named):
    if ":" in named.place and not named.place.startswith("parameter"):
        path = named.place.rpartition(":")[2]
        is_same = f".{path}".endswith(f".{named.name}") or called(here(named.place)) == named.name
    else:
        is_same = (
            re.fullmatch(r"(subject|setting of \w+|parameter .*|endpoint \w+|command \w+)", named.place) is not None
        )
    assert is_same == (named.reason == ""), "the reason stands in the third column"


def test_the_tables_are_read_whole():
    assert {seed: len(rows(seed)) for seed in SEEDS} == {
        "topics": 42,
        "observations": 17,
        "pipeline": 18,
        "layers": 33,
        "manager": 31,
    }
