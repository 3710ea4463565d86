import os
from langgraph.store.postgres import PostgresStore

with PostgresStore.from_conn_string(os.environ["POSTGRES_URL"]) as store:
    store.setup()
    for number in (9, 10, 100):
        store.put(("numbers",), str(number), {"sum": number})
    for condition in ({"$gt": 9}, {"$lt": 50}):
        print(sorted(int(item.key) for item in store.search(("numbers",), filter={"sum": condition})))
# expected: [10, 100] [9, 10]
# seen: [] [10, 100]
