"""The commands of `memstory`: one module each, with its `COMMAND`; the other modules are what they share."""

__all__ = ["authoring", "command", "results", "running"]
