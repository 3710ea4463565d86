"""What a run found out, as plain data: in memory, on disk and in every report."""
