"""The names by which the parts of somebody's object are known; docs/reference/objects.md is made from these tables.

Names are compared without underscores and case: `user_id`, `userId` and `userid` are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

METHODS: Final[Mapping[str, Sequence[str]]] = {
    "add": (
        *("add", "remember", "store", "save", "insert", "memorize", "write", "put", "create", "record", "append"),
        *("ingest", "upsert", "learn", "set"),
    ),
    "search": ("search", "query", "recall", "retrieve", "find", "similarity_search", "get_relevant", "lookup"),
    "get": ("get", "get_by_id", "fetch", "read", "load", "show"),
    "list": (
        *("list", "get_all", "all", "list_all", "get_memories", "get_all_memories", "memories", "dump", "everything"),
        *("fetch_all", "find_all"),
    ),
    "update": ("update", "edit", "modify", "replace", "change", "revise"),
    "delete": ("delete", "remove", "forget", "erase", "drop", "delete_by_id", "discard"),
    "delete_all": (
        *("delete_all", "clear", "forget_all", "remove_all", "clear_all", "erase_all", "reset", "wipe", "purge"),
        *("delete_user", "forget_user", "clear_user"),
    ),
    "context": ("context", "get_context", "build_context"),
    "settle": ("settle", "flush", "wait_until_indexed"),
    "begin": ("connect", "setup", "initialize", "init", "start", "open"),
    "close": ("close", "aclose", "shutdown", "disconnect", "stop"),
}
"""By operation the names of methods, the first that the object has; `begin` is called before the first use."""

ENDINGS: Final = ("memory", "memories", "text", "texts", "note", "notes", "fact", "facts", "item", "items", "document",
                  "documents", "record", "records", "entry", "entries")  # fmt: skip
"""What may stand behind a method's name: `add_memory`, `search_notes`."""

USER: Final = ("user_id", "user", "username", "user_name", "uid", "owner", "owner_id", "namespace", "tenant",
               "tenant_id", "account", "account_id", "person", "scope")  # fmt: skip
SESSION: Final = (
    "session_id",
    "session",
    "thread_id",
    "thread",
    "conversation_id",
    "conversation",
    "run_id",
    "chat_id",
)
ID: Final = ("id", "memory_id", "key", "_id", "doc_id", "document_id", "item_id", "note_id", "record_id", "entry_id",
             "fact_id", "uuid", "ref", "identifier", "id_")  # fmt: skip
TEXT: Final = ("text", "content", "memory", "document", "data", "fact", "note", "body", "value", "message", "statement",
               "new_text", "new_content", "page_content", "string", "entry", "item", "information")  # fmt: skip

ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "user": USER,
    "session": SESSION,
    "text": TEXT,
    "texts": ("texts", "contents", "memories", "documents", "items", "facts", "notes"),
    "messages": ("messages", "turns", "history"),
    "id": ID,
    "ids": ("ids", "memory_ids", "keys"),
    "query": ("query", "question", "q", "search_query", "query_text", "prompt", "search", "term", "keyword", "input"),
    "limit": ("limit", "top_k", "k", "n", "n_results", "max_results", "num_results", "count", "size", "top_n"),
    "metadata": ("metadata", "meta", "attributes", "extra"),
    "where": ("where", "filter", "filters", "metadata_filter", "metadata_filters", "metadata", "conditions"),
    "ttl": ("ttl", "ttl_seconds", "expires_in"),
    "role": ("role", "speaker"),
}
"""By what is given the names of parameters."""

PROMISING: Final[Mapping[str, str]] = {
    "scope.user": USER[0],
    "scope.session": SESSION[0],
    "add.metadata": ARGUMENTS["metadata"][0],
    "add.ttl": ARGUMENTS["ttl"][0],
    "search.where": ARGUMENTS["where"][0],
}
"""By capability the parameter whose presence promises it."""

GIVEN: Final[Mapping[str, Sequence[str]]] = {
    "add": ("user", "session", "messages", "texts", "text", "metadata", "ttl", "role", "id", "ids"),
    "search": ("user", "session", "query", "text", "limit", "where"),
    "get": ("user", "session", "id"),
    "list": ("user", "session", "limit"),
    "update": ("user", "session", "id", "text", "metadata"),
    "delete": ("user", "session", "id", "ids"),
    "delete_all": ("user", "session"),
    "context": ("user", "session", "query", "text", "limit"),
    "settle": (),
    "begin": (),
    "close": (),
}
"""By operation what its parameters may be, in the order in which they are looked for."""

BY_PLACE: Final[Mapping[str, Sequence[str]]] = {
    "add": ("text",),
    "search": ("query",),
    "get": ("id",),
    "update": ("id", "text"),
    "delete": ("id",),
    "context": ("query",),
}
"""What a required parameter of an unknown name is taken for, in order."""

FILES: Final = ("path", "file", "filename", "file_path", "filepath", "db", "db_path", "db_file", "database",
                "database_path", "store_path", "storage_path", "memory_path", "memory_file", "location")  # fmt: skip
FOLDERS: Final = ("folder", "dir", "directory", "root", "data_dir", "base_dir", "persist_directory", "persist_dir",
                  "storage_dir", "memory_dir", "workspace", "home", "base_path", "root_path", "root_dir")  # fmt: skip
URLS: Final = ("url", "db_url", "database_url", "uri", "db_uri", "database_uri", "dsn", "connection_string")
SERVERS: Final = ("base_url", "api_url", "server_url", "endpoint", "host", "hostname", "server", "port", "address",
                  "api_key", "token")  # fmt: skip

PLACES: Final[Mapping[str, Sequence[str]]] = {"file": FILES, "folder": FOLDERS, "url": URLS, "server": SERVERS}
"""By kind of place the names of a constructor's parameters."""

FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "id": ("id", "memory_id", "_id", "uuid", "key", "doc_id", "document_id", "item_id", "note_id", "record_id",
           "rowid"),
    "text": ("memory", "text", "content", "document", "page_content", "body", "value", "note", "fact", "data",
             "message", "payload"),
    "score": ("score", "similarity", "relevance", "relevance_score", "similarity_score"),
    "distance": ("distance", "dist"),
    "metadata": ("metadata", "meta", "attributes", "extra"),
    "created_at": ("created_at", "created", "timestamp"),
}  # fmt: skip
"""By part of a hit the keys or attributes that may hold it; a distance becomes a score by its sign."""

LISTS: Final = ("results", "memories", "hits", "items", "matches", "documents", "data", "entries", "records", "notes")
"""Under which of its keys a mapping may hold the list of hits."""


def plain(name: str) -> str:
    """Return a name as it is compared.

    >>> plain("userId") == plain("user_id")
    True
    """
    return name.replace("_", "").lower()
