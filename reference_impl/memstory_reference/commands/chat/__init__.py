"""`memstory-reference chat`: conversations with a memory at the terminal."""

__all__: list[str] = []
