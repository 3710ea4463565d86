import os
from langgraph.store.postgres import PostgresStore

def embed(texts):
    return [[float("cat" in text), float("boiler" in text), 0.1] for text in texts]

index = {"dims": 3, "embed": embed, "fields": ["facts[*]"]}
with PostgresStore.from_conn_string(os.environ["POSTGRES_URL"], index=index) as store:
    store.setup()
    store.put(("a",), "house", {"facts": ["The cat sleeps.", "The boiler is in the attic."]})
    store.put(("a",), "house", {"facts": ["The cat sleeps."]})
    print(round(store.search(("a",), query="Where is the boiler?")[0].score, 2))
# expected: 0.01
# seen: 1.0
