import chromadb

collection = chromadb.EphemeralClient().create_collection("states")
for key, state in (("one", 1), ("zero", 0)):
    collection.add(ids=[key], embeddings=[[1.0, 0.0]], metadatas=[{"state": state}])
for asked in (1.5, 0.1):
    print(*collection.get(where={"state": asked})["ids"])
# expected: nothing
# seen: one zero
