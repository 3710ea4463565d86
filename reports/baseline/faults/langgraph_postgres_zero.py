import os
from langgraph.store.postgres import PostgresStore

index = {"dims": 3, "embed": lambda texts: [[float("bread" in text), 0.0, 0.0] for text in texts], "fields": ["text"]}
with PostgresStore.from_conn_string(os.environ["POSTGRES_URL"], index=index) as store:
    store.setup()
    store.put(("zero",), "silence", {"text": "silence"})
    store.put(("zero",), "bread", {"text": "bread"})
    print(*(f"{one.key} {one.score}" for one in store.search(("zero",), query="bread")))
# expected: bread 1.0 first
# seen: silence nan bread 1.0
