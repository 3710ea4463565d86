from langgraph.store.memory import InMemoryStore

def embed(texts):
    return [[float("cat" in text), float("boiler" in text), 0.1] for text in texts]

store = InMemoryStore(index={"dims": 3, "embed": embed, "fields": ["facts[*]"]})
store.put(("a",), "house", {"facts": ["The cat sleeps.", "The boiler is in the attic."]})
store.put(("a",), "house", {"facts": ["The cat sleeps."]})
found = store.search(("a",), query="Where is the boiler?")[0]
print(found.value["facts"], round(found.score, 2))
# expected: ['The cat sleeps.'] 0.01
# seen: ['The cat sleeps.'] 1.0
