"""Commands for people who write stories and targets."""
