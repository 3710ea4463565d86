"""What a story can say: its words, their arguments, and what they need of a target."""
