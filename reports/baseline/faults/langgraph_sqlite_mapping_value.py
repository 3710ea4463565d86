from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

with SqliteStore.from_conn_string(":memory:") as disk:
    disk.setup()
    for store in (InMemoryStore(), disk):
        store.put(("a",), "k", {"size": {"width": 3}})
        try:
            print(len(store.search(("a",), filter={"size": {"width": 3}})))
        except ValueError as error:
            print(error)
# expected: 1 1
# seen: 1 Unsupported operator: width
