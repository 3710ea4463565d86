from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

embedded = []
index = {"dims": 2, "embed": lambda texts: [embedded.extend(texts) or [1.0, 0.0] for _ in texts], "fields": ["text"]}
with SqliteStore.from_conn_string(":memory:", index=index) as disk:
    disk.setup()
    for store in (InMemoryStore(index=index), disk):
        store.put(("a",), "k", {"text": "tea", "draft": "yes"})
print(*embedded)
# expected: tea tea
# seen: tea {"draft": "yes", "text": "tea"}
