from tempfile import mkdtemp
from pymilvus import MilvusClient, MilvusException

client = MilvusClient(f"{mkdtemp()}/milvus.db")
client.create_collection("boats", dimension=2)
client.insert("boats", [{"id": 1, "vector": [1.0, 0.0], "data": {"colour": "red"}}])
try:
    print(client.query("boats", filter='data["colour"] in ["red", "blue"]', output_fields=["id"]))
except MilvusException as error:
    print("raised", "must be a field reference" in str(error))
client.close()
# expected: the boat
# seen: raised True
