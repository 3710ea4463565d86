from txtai import Embeddings

embeddings = Embeddings(method="external", transform=lambda texts: [[1.0, 0.0] for _ in texts], content=True)
embeddings.index([("a", "The gate opens at six.", None), ("a", "The gate opens at seven.", None)])
print(embeddings.count(), len(embeddings.search("select id from txtai where id = 'a'")), len(embeddings.search("gate")))
# expected: 1 1 1
# seen: 2 2 2
