import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:
    embed = lambda self, text, memory_action=None: [1.0, float(len(text))]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]

store = {"path": tempfile.mkdtemp(), "collection_name": "memories", "embedding_model_dims": 2}
memory = Memory.from_config({"vector_store": {"provider": "qdrant", "config": store}})
memory.embedding_model = Stub()
for text in ("one", "another", "a third"):
    memory.add(text, user_id="ana", infer=False)
print(*(len(memory.get_all(filters={"user_id": "ana"}, top_k=count)["results"]) for count in (2, 1, 0)))
# expected: 2 1 0
# seen: 2 1 1
