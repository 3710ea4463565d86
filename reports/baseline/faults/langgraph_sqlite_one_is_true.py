from langgraph.store.sqlite import SqliteStore

with SqliteStore.from_conn_string(":memory:") as store:
    store.setup()
    for key, door in (("a", 1), ("b", True), ("c", "1")):
        store.put(("n",), key, {"door": door})
    print(*sorted(item.key for item in store.search(("n",), filter={"door": 1})))
# expected: a
# seen: a b
