"""The pipeline as a target."""

__all__: list[str] = []
