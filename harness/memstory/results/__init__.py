"""The results of a run as plain data: in memory, on disk and in every report."""
