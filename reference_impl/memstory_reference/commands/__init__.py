"""What can be typed after `memstory-reference`: one module a command, each with `add(subparsers)`."""

__all__ = ["parsers"]
