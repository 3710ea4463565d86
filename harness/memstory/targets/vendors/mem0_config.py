"""Somebody's own configuration of Mem0, as `Memory.from_config` takes it, in a place that no other case has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.contract.texts import did_you_mean
from memstory.models.openai_server import KEY

NOTES: Final = "MEMSTORY_MEM0_COLLECTIONS"
"""The variable that names the file in which the processes of a run note what they have made on servers."""

_AT_A_SERVER: Final = ("host", "url", "api_key", "tenant")
_SHARED: Final = ("databricks", "langchain", "vertex_ai_vector_search")
"""Stores whose collections somebody has to make by hand, or that are an object."""


@dataclass(frozen=True, slots=True)
class OwnConfiguration:
    """What Mem0 is opened with; `changed` says by dotted names what the user wrote otherwise, or left out.

    With `is_at_server` its collection stays there when the case's folder is gone.
    """

    tree: dict[str, Tree]
    changed: tuple[str, ...]
    provider: str
    is_at_server: bool


def read_object(option: str, name: Tree) -> dict[str, Tree]:
    """Return the JSON object in the file that `option` names, a path from where the command was typed.

    Raises:
        SetupError: there is no such file, or it holds something else.
    """
    said = f"{option}={name}"
    if not isinstance(name, str):
        raise SetupError(f"{said:.80}: give the path of a JSON file")
    try:
        found = json.loads(Path(name).expanduser().read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SetupError(f"{said}: the file cannot be read: {reason} (in {Path.cwd()})") from error
    except json.JSONDecodeError as error:
        raise SetupError(f"{said}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    if not isinstance(found, dict):
        raise SetupError(f"{said}: it holds a {type(found).__name__}; allowed: an object, {{…}}")
    return found


def own_configuration(
    written: Mapping[str, Tree], workspace: str, *, file: str, others: Mapping[str, Tree], length: int | None
) -> OwnConfiguration:
    """Return `written` with the files and collections of a case in the folder `workspace`.

    `others` are whole parts that replace those of the user, `length` that of the vectors where the user's embedder is
    replaced.

    Raises:
        SetupError: Mem0 does not take what is written, or has no place of a case's own in such a store.
    """
    with mem0_errors(file):
        configs = import_module("mem0.configs.base").MemoryConfig
        for name in written:
            if name not in configs.model_fields:
                near = did_you_mean(name, configs.model_fields)
                known = ", ".join(configs.model_fields)
                raise SetupError(f"{file}: Mem0 knows no '{name}'.{near} Known: {known}.")
        tree = {**deepcopy(dict(written)), **others}
        parsed = configs(**deepcopy(tree)).vector_store
    fields = type(parsed.config).model_fields
    values: dict[str, Tree] = dict(((tree.get("vector_store") or {}).get("config")) or {})
    place, is_at_server = _place(parsed.provider, values, fields, workspace, file)
    if length is not None and "embedding_model_dims" in fields:
        place["embedding_model_dims"] = length
    tree["vector_store"] = {"provider": parsed.provider, "config": {**values, **place}}
    tree["history_db_path"] = str(Path(workspace) / "history.sqlite3")
    changed = (*(f"vector_store.config.{name}" for name in place), "history_db_path", *others)
    return OwnConfiguration(tree, changed, parsed.provider, is_at_server)


@contextmanager
def mem0_errors(file: str) -> Iterator[None]:
    """Raise a SetupError of one line where Mem0, or a library that it was to use, does not take what is written."""
    try:
        yield
    except (ValueError, TypeError, ImportError) as error:
        raise SetupError(f"{file}: Mem0 does not take it: {_reason(error)}") from error
    except Exception as error:
        # What a missing OPENAI_API_KEY is to the client of OpenAI's protocol, which need not be installed.
        if type(error).__module__.partition(".")[0] != "openai":
            raise
        if not os.environ.get(KEY):
            raise SetupError(f"{KEY} is not set, and {file} names a model without an api_key") from error
        raise SetupError(f"{file}: Mem0 cannot be opened: {_reason(error)}") from error


def note_collections(workspace: str, tree: Mapping[str, Tree]) -> None:
    """Note that a case has collections at a server, so that they can be removed when its folder is gone."""
    with Path(os.environ[NOTES]).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps([workspace, tree]) + "\n")


def drop_unused_collections() -> None:
    """Remove from their servers the collections of cases whose folders are gone."""
    notes = Path(os.environ[NOTES])
    known = {*notes.read_text("utf-8").splitlines()} if notes.exists() else set()
    for line in known:
        workspace, tree = json.loads(line)
        if not Path(workspace).exists():
            _drop_collections(tree)


def _drop_collections(tree: Mapping[str, Tree]) -> None:
    """Remove the collection of a memory of this configuration, and that of its entities."""
    # The history was in the case's folder.
    memory: Any = import_module("mem0").Memory.from_config({**tree, "history_db_path": ":memory:"})
    for store in (memory.vector_store, memory.entity_store):
        store.delete_col()
    close_memory(memory)


def close_memory(memory: Any) -> None:
    """Close a memory and what it speaks to: Mem0's own `close` leaves Qdrant, Postgres and the models open."""
    memory.close()
    # The second store, of entities, is made by the first search.
    for store in filter(None, (memory.vector_store, memory._entity_store)):  # noqa: SLF001  (no public way)
        pool = getattr(store, "connection_pool", None)
        if pool is not None:
            pool.close()
    # The store of entities shares Qdrant's client, which locks its folder.
    for part in (memory.vector_store, memory.llm, memory.embedding_model):
        close = getattr(getattr(part, "client", None), "close", None)
        if close is not None:
            close()


def _place(
    provider: str, values: Mapping[str, Tree], fields: Mapping[str, Any], workspace: str, file: str
) -> tuple[dict[str, Tree], bool]:
    """Return what names the place of a case in its store, and whether that is a server."""
    if "path" in fields and not any(values.get(name) for name in _AT_A_SERVER):
        return {"path": str(Path(workspace) / provider)}, False
    if provider == "milvus" and values.get("url") and "://" not in str(values["url"]):
        return {"url": str(Path(workspace) / "milvus.db")}, False
    if "collection_name" not in fields or provider in _SHARED:
        raise SetupError(
            f"{file}: vector_store.provider={provider} has no collection that a run could make for itself, and no run "
            "writes into yours. Choose another vector_store, the rest as it is."
        )
    # Letters and digits alone: some stores take nothing else.
    return {"collection_name": f"memstory{blake2b(workspace.encode(), digest_size=12).hexdigest()}"}, True


def _reason(error: Exception) -> str:
    """Return why, as one line: without the values, among which are keys."""
    problems = getattr(error, "errors", None)
    if callable(problems):
        first = problems()[0]
        return ": ".join(filter(None, [".".join(map(str, first["loc"])), str(first["msg"])]))
    return " ".join(str(error).split()) or type(error).__name__
