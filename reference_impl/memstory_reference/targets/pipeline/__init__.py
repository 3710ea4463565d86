"""The pipeline as a target."""
