"""What a text says, by rules: cleaned, its signals, the type of memory that it is, the key of a preference."""

__all__ = ["cleaning", "detectors", "forget_wishes", "preference_keys", "routing"]
