"""The layers system as a target."""
