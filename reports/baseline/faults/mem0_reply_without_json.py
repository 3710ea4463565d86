import os, tempfile
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp(), "OPENAI_API_KEY": "none"}
from mem0 import Memory

class Stub:  # an embedder, and a model that does not answer with JSON
    embed = lambda self, text, memory_action=None: [1.0, 0.5, float(len(text))]
    embed_batch = lambda self, texts, memory_action=None: [self.embed(one) for one in texts]
    generate_response = lambda self, *args, **more: "Sure! Here is what I would remember."

store = {"path": tempfile.mkdtemp(), "collection_name": "memories", "embedding_model_dims": 3}
memory = Memory.from_config({"vector_store": {"provider": "qdrant", "config": store}})
memory.embedding_model = memory.llm = Stub()
print(memory.add("The doctor says no penicillin for me.", user_id="ana"), end=" ")
print(memory.get_all(filters={"user_id": "ana"}))
# expected: an error, or the memory
# seen: {'results': []} {'results': []}
