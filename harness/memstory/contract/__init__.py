"""What both source roots agree on: values, the operations of a target, chat models, time, errors, values as JSON.

The one part of the harness that a memory system may import; it imports nothing of either root.
"""

__all__ = [
    "cache_folder",
    "clock",
    "codec",
    "errors",
    "installation",
    "local_requests",
    "models",
    "secrets",
    "target",
    "texts",
    "values",
]
