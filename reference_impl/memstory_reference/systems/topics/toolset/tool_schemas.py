"""What a language model sees of the memory's tools; the wording is the specification's, because models react to it."""

from __future__ import annotations

from memstory.contract.values import Json
from memstory_reference.tooling.effects import AddTool, ChangeTool, ReadTool

RECALL_TOOLS = frozenset({"list_memories", "memory_recall", "recall_topic", "search_memory"})
"""Tools that look something up: an answer that used one may only repeat what is remembered already."""

SAVING_TOOLS = frozenset({"memory_save", "save_topic"})
"""Tools that store a standing fact."""

_TOPIC = "Topic key (e.g. 'user.name', 'project.deadline')."


def _text_parameters(required: tuple[str, ...] = (), **descriptions: str) -> dict[str, Json]:
    properties = {name: {"type": "string", "description": text} for name, text in descriptions.items()}
    parameters: dict[str, Json] = {"type": "object", "properties": properties}
    return {**parameters, "required": list(required)} if required else parameters


MEMORY_RECALL = ReadTool(
    name="memory_recall",
    description=(
        "Retrieve from memory. Two modes: "
        "(1) topic lookup — pass topic key to retrieve a stored preference, constraint, or project fact "
        "(e.g. topic='user.language_preference'); "
        "(2) similarity search — pass query string to search prior Q&A history for relevant past context. "
        "Use topic lookup when you know the key; use query search when looking for prior conversation context."
    ),
    # One of the two is required; JSON Schema says so badly, so it is checked when the tool is called.
    parameters=_text_parameters(
        topic="Topic key for exact lookup (e.g. 'user.name', 'project.deadline').",
        query="Free-text query for similarity search over past Q&A history.",
    ),
)

MEMORY_SAVE = ChangeTool(
    name="memory_save",
    description=(
        "Save a preference, constraint, or project fact to memory under a topic key for exact retrieval later. "
        "Use topic prefixes: user.* for user preferences and personal facts, "
        "project.* for project decisions and metadata, constraint.* for things to avoid or enforce. "
        "Example: memory_save(topic='user.name', content='Richard'). "
        "Overwrites any previous value for the same topic key."
    ),
    parameters=_text_parameters(("topic", "content"), topic=_TOPIC, content="The value to store."),
)

SAVE_TOPIC = ChangeTool(
    name="save_topic",
    description="User asks to remember a preference, rule, or fact permanently across sessions",
    parameters=_text_parameters(
        ("topic", "content"),
        topic=(
            "Topic key with a prefix: user.* for preferences and personal facts, project.* for decisions and "
            "deadlines, constraint.* for things to avoid or enforce (e.g. 'user.name')."
        ),
        content="The value to store; it replaces what the topic held before.",
    ),
)

RECALL_TOPIC = ReadTool(
    name="recall_topic",
    description="Look up a specific standing fact by key the agent knows or can infer",
    parameters=_text_parameters(("topic",), topic=_TOPIC),
)

SAVE_MEMORY = AddTool(
    name="save_memory",
    description="Explicitly note something important mid-conversation (agent-initiated)",
    parameters=_text_parameters(("content",), content="What to note, in a sentence that stands on its own."),
)

SEARCH_MEMORY = ReadTool(
    name="search_memory",
    description="Recall something from past sessions when no exact key is known — search by meaning",
    parameters=_text_parameters(("query",), query="What to look for, in words that the memory may have used."),
)

LIST_MEMORIES = ReadTool(
    name="list_memories",
    description=(
        "List everything that is remembered about the user, newest first, each with its id: standing facts, then past "
        "turns. Use it when the user asks what you know about them, and to find the ids of what is to be forgotten."
    ),
    parameters=_text_parameters(),
)

FORGET_MEMORY = ChangeTool(
    name="forget_memory",
    description=(
        "Forget something because the user asks for it, with every past turn that says it. Give the topic key of a "
        "standing fact, or the id of a memory as list_memories shows it. It cannot be undone."
    ),
    parameters=_text_parameters(topic=_TOPIC, id="The id of a memory."),
)

RATE_MEMORY = ChangeTool(
    name="rate_memory",
    description="Note how useful a past turn was, because the user said so: better ones are found first from then on",
    parameters={
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id of a past turn, as list_memories shows it."},
            "value": {"type": "number", "description": "From -1, misleading, to 1, very useful."},
        },
        "required": ["id", "value"],
    },
)
