"""The turns system as a target."""
