"""Capabilities: the words for what a target can do, and what each one means."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.target import Capability

OPERATIONS: Mapping[Capability, str] = {
    "add": "remembers texts",
    "add.key": "remembers a text under a key that the caller chose",
    "chat": "takes conversational turns",
    "chat.tools": "reports the tool calls of a turn",
    "clock": "takes its time from the story's clock",
    "context": "gives the text that it would put into a prompt",
    "crash": "can be killed and opened again",
    "delete": "forgets",
    "embedder.fixed": "takes the vectors of texts from the story",
    "feedback": "takes ratings",
    "get.id": "looks a memory up by its id",
    "get.key": "looks a memory up by its key",
    "list": "enumerates memories",
    "llm.scripted": "takes the replies of its language model from the story",
    "restart": "can be closed and opened again",
    "scope.user": "keeps users apart",
    "search": "ranked retrieval",
    "search.budget": "keeps a search within a number of tokens",
    "search.explain": "explains the scores of hits",
    "search.min_score": "leaves out hits below a score",
    "search.scores": "gives scores with hits",
    "search.where": "searches by metadata",
    "session": "is told when a session ends",
    "tool": "lets any agent call its tools",
    "tool.schema": "announces its tools with their schemas",
    "update": "replaces what a memory says",
}
"""Capabilities that steps and expectations call for."""

FEATURES: Mapping[Capability, str] = {
    "add.batch_atomic": "a list of items is stored whole or not at all",
    "add.exact": "gives every text back letter for letter, white space and invisible characters too",
    "add.import": "takes memories as they were exported",
    "add.infer": "decides itself what of a text to remember",
    "add.verbatim": "keeps every text that it is given, as it is",
    "async_ingest": "remembers in the background",
    "audit_separate": "keeps audit records out of what is recalled",
    "chat.window": "keeps the last turns without searching",
    "compression": "summarises old memories",
    "dedup": "keeps one of two memories that say the same",
    "delete.reports_missing": "says whether what is to be forgotten was known",
    "delete.scope": "forgets everything of a user",
    "expiry": "forgets by age",
    "expiry.at": "hides a memory from the moment on that its metadata `expires_at` names",
    "expiry.read_filter": "hides what has expired before it is cleaned up",
    "hold_buffer": "holds uncertain memories until they are confirmed",
    "importance": "weighs how important a memory is",
    "incognito": "can leave no trace",
    "persistent": "keeps memories on disk",
    "rank.quality": "ranks by quality beside nearness",
    "rank.reward": "ranks by feedback beside nearness",
    "scope.required": "refuses to work without a user",
    "scope.session": "keeps sessions apart where asked to",
    "scope.session_all": "keeps every memory to its session where asked to, facts too",
    "search.archived": "can search what is archived",
    "search.hybrid": "searches by words and by meaning",
    "search.lexical": "searches by words",
    "supersede": "replaces what is outdated",
    "unicode_lexical": "searches by words in every script",
}
"""Capabilities that no step shows, which `requires:` may name."""

PREFIXES: Mapping[str, str] = {
    "fault": "a part that can be made to fail",
    "inspect": "something that can be looked at",
    "job": "a maintenance job",
    "option": "an option",
}
"""`job.compress`, `inspect.embedder` …: whatever follows the dot is the target's own word."""


def is_known(capability: Capability) -> bool:
    """Return whether `requires:` may name `capability`."""
    prefix, dot, rest = capability.partition(".")
    return capability in OPERATIONS or capability in FEATURES or bool(prefix in PREFIXES and dot and rest)
