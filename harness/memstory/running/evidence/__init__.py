"""What shows that a thing happened: texts that are gone, faults that landed, files that were changed."""
