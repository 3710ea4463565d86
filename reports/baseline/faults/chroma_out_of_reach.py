import chromadb, numpy

unit = lambda rows: rows / numpy.linalg.norm(rows, axis=-1, keepdims=True)
client, seen = chromadb.EphemeralClient(), "always first"
for seed in range(200):  # of 20 collections one or none; the index is drawn
    draw = numpy.random.default_rng(seed)
    common, own = unit(draw.standard_normal((2, 384)))
    last = unit(common + 0.6 * own)  # its cosine with itself is 1, with each of the others .7 at most
    rows = client.create_collection(f"rows-{seed}", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    rows.add(ids=list(map(str, range(1000))), embeddings=unit(common + 0.5 * unit(draw.standard_normal((1000, 384)))))
    rows.add(ids=["last"], embeddings=[last])
    if "last" not in rows.query(query_embeddings=[last], n_results=100)["ids"][0]:
        seen = "not among 100 hits"
        break
print(seen)
# expected: always first
# seen: not among 100 hits
