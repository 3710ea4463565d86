import asyncio
import chromadb
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.vector_stores.chroma import ChromaVectorStore

store = ChromaVectorStore(chroma_collection=chromadb.EphemeralClient().create_collection("abc"))
block = VectorMemoryBlock(vector_store=store, embed_model=MockEmbedding(embed_dim=4), retrieval_context_window=1)
for who, text in (("ingrid", "The safe opens with 4-8-15."), ("jonas", "The office opens with a key.")):
    asyncio.run(block.aput([ChatMessage(role="user", content=text)], session_id=who))
for who in ("ingrid", "jonas"):
    print("safe" in asyncio.run(block.aget([ChatMessage(role="user", content="What opens?")], session_id=who)))
# expected: True False
# seen: True True
