"""Evidence that something happened: texts that are gone, faults that landed, files that were changed."""
