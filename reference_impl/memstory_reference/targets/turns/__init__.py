"""The turns system as a target."""

__all__: list[str] = []
