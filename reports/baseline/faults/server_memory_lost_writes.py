import asyncio, json, os, tempfile
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    env = {**os.environ, "MEMORY_FILE_PATH": os.path.join(tempfile.mkdtemp(), "memory.jsonl")}
    server = StdioServerParameters(command="npx", args=["-y", "@modelcontextprotocol/server-memory@2026.8.31"], env=env)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        made = ({"name": f"parcel {n}", "entityType": "note", "observations": ["here"]} for n in range(12))
        done = await asyncio.gather(*(session.call_tool("create_entities", {"entities": [one]}) for one in made))
        kept = json.loads((await session.call_tool("read_graph", {})).content[0].text)["entities"]
        print(len(done) - sum(bool(one.isError if hasattr(one, "isError") else one.is_error) for one in done), len(kept))
asyncio.run(main())
# expected: 12 12
# seen: 12 1
