from langgraph.store.memory import InMemoryStore

store = InMemoryStore()
store.put(("a",), "bill", {"sum": 120})
store.put(("a",), "note", {"text": "no sum here"})
try:
    print(*(item.key for item in store.search(("a",), filter={"sum": {"$gt": 100}})))
except TypeError as error:
    print(str(error)[:47])
# expected: bill
# seen: float() argument must be a string or a real num
