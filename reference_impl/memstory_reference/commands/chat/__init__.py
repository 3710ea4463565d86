"""`memstory-reference chat`: conversations with a memory at the terminal."""
