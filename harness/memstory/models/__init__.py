"""Everything that talks with a language model.

Clients of model servers and recordings of them; the loop in which a model uses tools; the shim that talks for a backend
without chat; the judge of answers; and the proxy between a memory and its model.
"""

__all__ = [
    "answering",
    "conversation",
    "counted_model",
    "judge",
    "loading",
    "ollama_address",
    "openai_server",
    "proxy",
    "proxy_recording",
    "question_answers",
    "scripted_chat",
    "shim",
    "shim_tools",
    "spoiled_replies",
    "static_vectors",
    "word_vectors",
]
