import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:
    embed = lambda self, text, memory_action=None: [1.0, float(len(text))]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]

store = {"path": tempfile.mkdtemp(), "collection_name": "memories"}
memory = Memory.from_config({"vector_store": {"provider": "chroma", "config": store}})
memory.embedding_model = Stub()
memory.add("The invoice is due in May.", user_id="ana", infer=False, metadata={"sum": 120})
try:
    print(len(memory.get_all(filters={"user_id": "ana", "OR": [{"sum": 120}, {"sum": 7}]})["results"]))
except Exception as error:
    print(type(error).__name__, error)
# expected: 1
# seen: InvalidArgumentError Invalid where clause
