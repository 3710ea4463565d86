import sqlite3
import sqlite_vec

rows = sqlite3.connect(":memory:")
rows.enable_load_extension(True)
sqlite_vec.load(rows)
rows.execute("CREATE VIRTUAL TABLE notes USING vec0(vector float[2] distance_metric=cosine)")
for number, vector in ((1, [1.0, 0.0]), (2, [0.0, 0.0])):
    rows.execute("INSERT INTO notes(rowid, vector) VALUES (?, ?)", (number, sqlite_vec.serialize_float32(vector)))
asked = sqlite_vec.serialize_float32([1.0, 0.0])
print(*rows.execute("SELECT rowid, distance FROM notes WHERE vector MATCH ? AND k = 2 ORDER BY distance", (asked,)))
# expected: (1, 0.0) first
# seen: (2, None) (1, 0.0)
