"""A recording is judged by its story: pure, nothing is run and nothing is read."""
