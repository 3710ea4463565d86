import os
from langgraph.store.postgres import PostgresStore

index = {"dims": 3, "embed": lambda texts: [[1.0, len(text) / 100, 0.0] for text in texts], "fields": ["text"]}
with PostgresStore.from_conn_string(os.environ["POSTGRES_URL"], index=index) as store:
    store.setup()
    for number in range(30):
        store.put(("pages",), f"k{number}", {"text": "x" * number})
    print(*(len(store.search(("pages",), query="x", limit=5, offset=place)) for place in range(0, 30, 5)))
# expected: 5 5 5 5 5 5
# seen: 5 5 1 0 0 0
