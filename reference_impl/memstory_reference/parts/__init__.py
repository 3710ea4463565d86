"""Parts of the memory systems that run in processes of their own and meet on a bus."""
