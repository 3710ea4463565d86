"""A memory of dialogue turns: who said what, when, in which session, and beside what."""
