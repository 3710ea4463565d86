"""The tools of the topics memory: what a model sees of them, what they do, and the texts that they answer with."""

__all__ = ["result_texts", "tool_schemas", "topic_tools"]
