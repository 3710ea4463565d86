"""The memory systems; none knows another."""
