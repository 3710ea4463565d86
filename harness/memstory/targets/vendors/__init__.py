"""Adapters to other people's backends, one module a vendor; a vendor is imported when its target opens."""

__all__: list[str] = []
