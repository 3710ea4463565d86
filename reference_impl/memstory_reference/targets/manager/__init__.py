"""The manager system as a target."""
