"""`memstory-reference serve http`: the layers over HTTP."""
