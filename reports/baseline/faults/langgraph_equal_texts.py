from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

index = {"dims": 2, "embed": lambda texts: [[float(len(one)), 1.0] for one in texts], "fields": ["text"]}
store = InMemoryStore(index=index)
try:
    store.batch([PutOp(("n",), key, {"text": text}) for key, text in (("a", "same"), ("b", "same"), ("c", "other"))])
    print("stored")
except ValueError as error:
    print(error)
# expected: stored
# seen: Number of embeddings (2) does not match number of indices (3)
