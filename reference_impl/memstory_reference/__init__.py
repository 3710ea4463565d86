"""Six memory systems for AI agents, each complete, and the parts that they share."""

__all__: list[str] = []
