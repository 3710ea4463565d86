from langgraph.store.sqlite import SqliteStore

index = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}
with SqliteStore.from_conn_string(":memory:", index=index) as store:
    store.setup()
    store.put(("a",), "k", {"text": "The code is 4711."})
    store.delete(("a",), "k")
    for table in ("store", "store_vectors"):
        print(*store.conn.execute(f"SELECT count(*) FROM {table}").fetchone())
# expected: 0 0
# seen: 0 1
