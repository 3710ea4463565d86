import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:
    embed = lambda self, text, memory_action=None: [1.0, float(len(text))]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]

store = {"connection_string": os.environ["POSTGRES_URL"], "collection_name": "doors", "embedding_model_dims": 2}
memory = Memory.from_config({"vector_store": {"provider": "pgvector", "config": store}})
memory.embedding_model = Stub()
for text, door in (("The number.", 1), ("The text.", "1")):
    memory.add(text, user_id="ana", infer=False, metadata={"door": door})
print(*sorted(one["memory"] for one in memory.get_all(filters={"user_id": "ana", "door": 1})["results"]))
# expected: The number.
# seen: The number. The text.
