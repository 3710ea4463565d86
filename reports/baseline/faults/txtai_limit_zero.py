import numpy
from txtai.embeddings import Embeddings

index = Embeddings({"method": "external", "transform": lambda texts: numpy.ones((len(texts), 2), "float32"), "content": True})
index.upsert([(key, key) for key in "abcde"])
print(*(len(index.search("a", limit)) for limit in (2, 1, 0)))
# expected: 2 1 0
# seen: 2 1 3
