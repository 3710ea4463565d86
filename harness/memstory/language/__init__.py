"""The story language: its words, their arguments, and what they need from a target."""

__all__ = [
    "capabilities", "grammar", "json_schemas", "matchers", "reading", "references", "registry", "stories", "story",
    "text", "words",
]  # fmt: skip
