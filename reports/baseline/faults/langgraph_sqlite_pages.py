from langgraph.store.sqlite import SqliteStore

index = {"dims": 2, "embed": lambda texts: [[1.0, len(text) / 100] for text in texts], "fields": ["text"]}
with SqliteStore.from_conn_string(":memory:", index=index) as store:
    store.setup()
    for number in range(30):
        store.put(("a",), f"k{number}", {"text": "x" * number})
    print(*(len(store.search(("a",), query="x", limit=5, offset=place)) for place in range(0, 30, 5)))
# expected: 5 5 5 5 5 5
# seen: 5 5 0 0 0 0
