"""The story language: its words, their arguments, and what they need from a target."""

__all__ = [
    "capabilities", "grammar", "json_lines", "json_schemas", "matchers", "reading", "references", "registry",
    "row_files", "stories", "story", "story_paths", "text", "words",
]  # fmt: skip
