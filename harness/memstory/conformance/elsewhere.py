"""Why no test of the contract shows a capability: by word, what shows it in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.contract.target import Capability

_TRUST = "its worth is the place of a hit among others, which only stories of conflicting texts judge"
_RANK = "a rank is worth something among many texts, which stories and retrieval tasks have"
_CHAT = "what a conversation has to lead to is the matter of a story, whose words and model it needs"
_OWN = "the target decides when and for which texts it happens, so that its stories show it"

ELSEWHERE: Final[Mapping[Capability, str]] = {
    "add.batch_atomic": "which item of a list cannot be stored differs between targets; stories break a part meanwhile",
    "add.by_model": "stories make the model fail (`fault: {model: …}`) and look at what is stored",
    "add.import": "the form of an export is the target's own; its stories export and import",
    "add.infer": "what is worth keeping is the target's decision; its stories and `model_rules` show it",
    "add.role": _TRUST,
    "add.source": _TRUST,
    "add.turns": "it spares the reader of a dataset a prefix in each turn; retrieval tasks on conversations show it",
    "async_ingest": "it is a hint about when work is done, not a promise: `settle` is awaited in any case",
    "audit_separate": _OWN,
    "chat": _CHAT,
    "chat.tools": _CHAT,
    "chat.window": _CHAT,
    "compression": _OWN,
    "expiry": _OWN,
    "expiry.read_filter": _OWN,
    "fault.": "the harness itself refuses a story whose fault did not land (`faults_landed`)",
    "hold_buffer": _OWN,
    "identifiers.scripts": "what an identifier is, the target decides; stories of the tag `identifiers` show it",
    "identifiers.spellings": "what an identifier is, the target decides; stories of the tag `identifiers` show it",
    "importance": _OWN,
    "incognito": "it is an option of the target, with which its stories look for traces (`inspect: files`)",
    "integrity": "stories change the files behind its back (`tamper`)",
    "job.": "the arguments and the effect of a job are the target's own; its stories show them",
    "llm.scripted": "the prompts that rules must fit are the target's own; a call that fits none ends a story as error",
    "option.": "the values and the effect of an option are the target's own; its stories show them",
    "rank.newest": _RANK,
    "rank.quality": _RANK,
    "rank.reward": _RANK,
    "rank.unstuffed": _RANK,
    "scope.names": "the harness adds it where no other case writes to the same memory (`shares_server`)",
    "search.archived": _OWN,
    "search.hybrid": _RANK,
    "search.lexical": _RANK,
    "session": "what the end of a session does is the target's own; its stories show it",
    "supersede": _OWN,
    "unicode_lexical": _RANK,
}
