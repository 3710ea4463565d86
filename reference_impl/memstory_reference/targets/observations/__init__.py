"""The observations system as a target."""
