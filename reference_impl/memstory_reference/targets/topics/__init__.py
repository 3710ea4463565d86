"""The topics system as a target."""
