"""Capabilities: the words for what a target can do, what each one means, and which of them a story needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.target import OPERATIONS, Capability
from memstory.language.story import Step, Story
from memstory.language.words import WORDS

_OF_A_STORY: Final[Mapping[Capability, str]] = {
    "embedder.fixed": "takes the vectors of texts from the story",
    "llm.scripted": "takes the replies of its language model from the story",
    "option.": "an option",
    "scope.user": "keeps users apart",
}
"""What a whole story calls for, beside what its step words do; a name that ends with a dot stands for a family."""

FEATURES: Final[Mapping[Capability, str]] = {
    "add.batch_atomic": "a list of items is stored whole or not at all",
    "add.by_model": "asks a language model what of a text to remember",
    "add.exact": "gives every text back letter for letter, white space and invisible characters too",
    "add.import": "takes memories as they were exported",
    "add.infer": "decides itself what of a text to remember",
    "add.key.apart": "finds what has a key by its key and in lists, not by searching",
    "add.turns": "takes speaker, session and said_at of a turn apart from its text, which then holds the words alone",
    "add.verbatim": "keeps every text that it is given, as it is",
    "async_ingest": "remembers in the background",
    "audit_separate": "keeps audit records out of what is recalled",
    "chat.window": "keeps the last turns without searching",
    "compression": "summarises old memories",
    "dedup": "keeps one of two memories that say the same",
    "delete.erases": "leaves nothing of what is forgotten in its files",
    "delete.reports_missing": "says whether what is to be forgotten was known",
    "delete.scope": "forgets everything of a user",
    "expiry": "forgets by age",
    "expiry.at": "hides a memory from the moment on that its metadata `expires_at` names",
    "expiry.read_filter": "hides what has expired before it is cleaned up",
    "hold_buffer": "holds uncertain memories until they are confirmed",
    "identifiers.scripts": "takes a name in Cyrillic or Greek letters and in Latin ones for the same",
    "identifiers.spellings": "takes two spellings of one identifier for the same",
    "importance": "weighs how important a memory is",
    "incognito": "can leave no trace",
    "load": "takes a corpus of any size by a bulk path of its own",
    "integrity": "notices when its files were changed behind its back",
    "persistent": "keeps memories on disk",
    "preloaded": "can be asked as it was filled before: opening and closing change nothing in it",
    "rank.newest": "puts the newer of two statements first that answer alike",
    "rank.quality": "ranks by quality beside nearness",
    "rank.reward": "ranks by feedback beside nearness",
    "rank.unstuffed": "gives a text no better place for repeating the words of a question",
    "scope.names": "takes users' names as they are, for no other case writes to the same memory",
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


def operations() -> Mapping[Capability, str]:
    """Return {capability: meaning} for what steps and expectations call for, without families."""
    return {name: meaning for name, meaning in _step_capabilities().items() if not name.endswith(".")}


def families() -> Mapping[str, str]:
    """Return {family: meaning}, such as `job` and `inspect`: a target itself names what follows the dot."""
    return {name.removesuffix("."): meaning for name, meaning in _step_capabilities().items() if name.endswith(".")}


def _step_capabilities() -> Mapping[str, str]:
    found = dict(_OF_A_STORY)
    for word in WORDS.values():
        found |= word.capabilities
    return dict(sorted(found.items()))


def is_known(capability: Capability) -> bool:
    """Return whether `capability` exists, or belongs to a family."""
    family, dot, rest = capability.partition(".")
    return capability in operations() or capability in FEATURES or bool(family in families() and dot and rest)


def meaning(capability: Capability) -> str:
    """Return what a target with `capability` does, as in "remembers texts"; KeyError if it is unknown."""
    family, _, rest = capability.partition(".")
    return operations().get(capability) or FEATURES.get(capability) or f"{families()[family]}: {rest}"


LACKS: Final = " does not support "
"""The part of the reason of a case between the name of its target and the capabilities that it lacks."""

IS_SHARED: Final = ", which other cases use too,"
"""The part of the reason before `LACKS`, for a target that shares its server."""

NEEDS_ITS_OWN: Final = frozenset(
    {
        "clock",
        "crash",
        "delete.erases",
        "integrity",
        "other_process",
        "restart",
        "restart.embedder",
        "scope.names",
        "upgrade",
    }
)
"""Capabilities that a target which shares its server never has, whatever its adapter declares."""

_OPERATIONS: Final = frozenset({"chat", "delete.scope", "get.id", "get.key"})
_OF_OBJECTS: Final = frozenset({"context", "delete", "delete.scope", "get.id", "list", "update"})
"""The operations for which an object can have a method, beside those that it has to have."""

_PARTS: Final = ("embedder.", "fault.", "inspect.", "job.", "llm.", "option.")


def is_of_one_memory(capability: Capability) -> bool:
    """Return whether `capability` is about parts, jobs or options that each memory has of its own.

    >>> is_of_one_memory("job.compress"), is_of_one_memory("list")
    (True, False)
    """
    return capability.startswith(_PARTS)


def remedy(capability: Capability, parameters: Mapping[Capability, str]) -> str:
    """Return what adds `capability` to an adapter or a table, or to an object, whose `parameters` promise some.

    >>> [remedy(name, {}) for name in ("list", "scope.user", "add.verbatim")]
    ['add the operation', 'declare it if it holds', 'declare it if it holds']
    >>> [remedy(name, {"scope.user": "user_id"}) for name in ("list", "scope.user", "feedback")]
    ['add a method', 'add a parameter user_id', 'only an adapter can have it']
    """
    if capability in parameters:
        return f"add a parameter {parameters[capability]}"
    if capability not in _OPERATIONS and capability.replace(".", "_") not in OPERATIONS:
        return "declare it if it holds"
    if not parameters:
        return "add the operation"
    return "add a method" if capability in _OF_OBJECTS else "only an adapter can have it"


def needs_of_story(story: Story) -> Mapping[Capability, Sequence[str]]:
    """Return {capability: reasons} for all that `story` needs, such as "step 2 (search), line 5".

    The reason of what no step or key calls for is `requires:`.
    """
    found: dict[Capability, list[str]] = {}
    for name, reason in (*_of_steps(story.steps), *_of_keys(story)):
        # A story for some targets speaks of the metadata that these have.
        if not (story.targets and name.startswith("add.metadata")):
            found.setdefault(name, []).append(reason)
    return {name: found.get(name, ["requires:"]) for name in sorted(found.keys() | story.needs)}


def _of_steps(steps: Sequence[Step]) -> Iterator[tuple[Capability, str]]:
    numbered = list(_number_steps(steps, ""))
    for number, step in numbered:
        for name in WORDS[step.op].capabilities_for(step.args, step.expect):
            yield name, f"step {number} ({step.op}), line {step.mark.line}"
        if step.forbid:
            yield "search", f"forbid: of step {number} ({step.op}), line {step.mark.line}"
    users = {step.user for _, step in numbered if WORDS[step.op].has_user}
    if len(users) > 1 or any("${" in (user or "") for user in users):
        yield "scope.user", "steps of several users"
    if "" in users:
        # Elsewhere a user of the story is made this case's own, and nobody would be everybody's.
        yield "scope.names", "a user without a name"


def _number_steps(steps: Sequence[Step], before: str) -> Iterator[tuple[str, Step]]:
    for index, step in enumerate(steps, 1):
        yield f"{before}{index}", step
        yield from _number_steps(step.steps, f"{before}{index}.")


def _of_keys(story: Story) -> Iterator[tuple[Capability, str]]:
    for name in story.options:
        yield f"option.{name}", "options:"
    if story.vectors:
        yield "embedder.fixed", "vectors:"
    if story.model:
        yield "llm.scripted", "model:"
    if story.retrieval:
        yield ("preloaded", "retrieval: preloaded") if story.retrieval.preloaded else ("add", "retrieval:")
        yield "search", "retrieval:"
