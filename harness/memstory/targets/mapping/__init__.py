"""How a table of `memstory.toml` maps the operations of a memory to the calls of a server, whatever carries them."""
