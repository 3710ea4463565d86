from langgraph.store.memory import InMemoryStore

store = InMemoryStore()
for key, door in (("a", 1), ("b", True), ("c", "1")):
    store.put(("n",), key, {"door": door})
print(*sorted(item.key for item in store.search(("n",), filter={"door": 1})))
# expected: a
# seen: a b
