from tempfile import mkdtemp
from pymilvus import MilvusClient

client = MilvusClient(f"{mkdtemp()}/milvus.db")
client.create_collection("doors", dimension=2)
rows = [{"id": 1, "vector": [1.0, 0.0], "data": {"door": 1}}, {"id": 2, "vector": [1.0, 0.0], "data": {"door": True}}]
client.insert("doors", rows)
found = client.query("doors", filter='data["door"] == 1', output_fields=["id"])
print(*sorted(row["id"] for row in found))
client.close()
# expected: 1
# seen: 1 2
