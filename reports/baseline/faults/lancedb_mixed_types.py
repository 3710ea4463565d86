import json
from tempfile import mkdtemp
import lancedb
import pyarrow as pa

schema = pa.schema([("id", pa.string()), ("data", pa.json_())])
table = lancedb.connect(mkdtemp()).create_table("notes", schema=schema)
table.add([{"id": "a", "data": json.dumps({"page": 9})}, {"id": "b", "data": json.dumps({"page": "nine"})}])
try:
    print(*(row["id"] for row in table.search().where("json_get_float(data, 'page') > 3").to_list()))
except RuntimeError as error:
    print("raised", "Failed to convert to float" in str(error))
# expected: a
# seen: raised True
