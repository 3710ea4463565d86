import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:
    embed = lambda self, text, memory_action=None: [1.0, float(len(text))]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]

store = {"path": tempfile.mkdtemp(), "collection_name": "memories", "embedding_model_dims": 2}
memory = Memory.from_config({"vector_store": {"provider": "faiss", "config": store}})
memory.embedding_model = Stub()
memory.add("The invoice is due in May.", user_id="ana", infer=False, metadata={"sum": 120})
for condition in (120, {"gt": 100}, {"in": [120]}):
    print(len(memory.get_all(filters={"user_id": "ana", "sum": condition})["results"]))
# expected: 1 1 1
# seen: 1 0 0
