"""`memstory-reference serve http`: the layers over HTTP."""

__all__ = ["serve_http"]
