import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:
    embed = lambda self, text, memory_action=None: [1.0, float("near" in text)]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]

store = {"path": tempfile.mkdtemp(), "collection_name": "memories", "embedding_model_dims": 2}
memory = Memory.from_config({"vector_store": {"provider": "faiss", "config": store}})
memory.embedding_model = Stub()
memory.add("Zora's only memory.", user_id="zora", infer=False)
for number in range(130):
    memory.add(f"Memory {number} that is near.", user_id="others", infer=False)
print(len(memory.search("What is near?", filters={"user_id": "zora"}, top_k=3, threshold=0.0)["results"]))
# expected: 1
# seen: 0
