"""A language model's server on this machine that forwards, records, replays, counts, or answers by rules."""
