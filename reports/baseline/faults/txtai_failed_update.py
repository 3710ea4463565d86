from txtai import Embeddings

down = []


def embed(texts):
    if down:
        raise ConnectionError("no model")
    return [[1.0, 0.0] for _ in texts]


embeddings = Embeddings(method="external", transform=embed, content=True)
embeddings.index([("gate", "The gate opens at six.", None)])
down.append(True)
try:
    embeddings.upsert([("gate", "The gate opens at seven.", None)])
except ConnectionError:
    down.clear()
print(embeddings.count(), len(embeddings.search("gate")))
# expected: 1 1
# seen: 0 0
