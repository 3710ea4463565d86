import numpy
from txtai.embeddings import Embeddings

index = Embeddings({"method": "external", "transform": lambda texts: numpy.ones((len(texts), 2), "float32"), "content": True})
index.upsert([(key, {"text": key, "door": door}) for key, door in (("a", 1), ("b", True), ("c", "1"))])
print(*sorted(row["id"] for row in index.search("SELECT id FROM txtai WHERE door = 1", 9)))
# expected: a
# seen: a b
