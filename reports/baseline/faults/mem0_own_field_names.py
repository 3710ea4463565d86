import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:
    embed = lambda self, text, memory_action=None: [1.0, float(len(text))]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]

store = {"path": tempfile.mkdtemp(), "collection_name": "memories", "embedding_model_dims": 2}
memory = Memory.from_config({"vector_store": {"provider": "qdrant", "config": store}})
memory.embedding_model = Stub()
memory.add("The parcel came.", user_id="ana", infer=False, metadata={"data": "two kilos", "hash": "9f2", "from": "Oslo"})
print(memory.get_all(filters={"user_id": "ana"})["results"][0]["metadata"])
# expected: a refusal, or {'data': 'two kilos', 'hash': '9f2', 'from': 'Oslo'}
# seen: {'from': 'Oslo'}
