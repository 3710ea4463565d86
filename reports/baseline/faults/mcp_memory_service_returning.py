import asyncio, os, tempfile
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    env = {**os.environ, "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec", "MCP_MEMORY_BASE_DIR": tempfile.mkdtemp(), "MCP_MEMORY_USE_ONNX": "1"}
    tool = ["--from", "mcp-memory-service==12.4.0", "--with", "onnxruntime", "--with", "tokenizers", "memory", "server"]
    async with stdio_client(StdioServerParameters(command="uvx", args=tool, env=env)) as streams, ClientSession(*streams) as session:
        await session.initialize()
        said = await session.call_tool("memory_store", {"content": "The team meets on Monday."})
        for text in ("The team meets on Thursday.", "The team meets on Monday."):
            known = said.content[0].text.replace("New hash", "hash").split("hash: ")[-1].split(")")[0].split(",")[0]
            said = await session.call_tool("memory_update", {"content_hash": known, "updates": {"content": text}, "versioned": True})
        print("Duplicate content detected" in said.content[0].text)
asyncio.run(main())
# expected: False
# seen: True
