from langgraph.store.sqlite import SqliteStore

with SqliteStore.from_conn_string(":memory:") as store:
    store.setup()
    store.put(("a",), "k", {"channel": 175928847299117063})
    print(len(store.search(("a",), filter={"channel": 175928847299117063})))
# expected: 1
# seen: 0
