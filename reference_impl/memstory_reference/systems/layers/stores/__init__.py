"""Where the layers are kept: in memory, in SQLite, in Postgres."""
