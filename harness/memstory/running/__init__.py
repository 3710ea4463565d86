"""A case is carried out: story and target in, recording out; nothing is judged here."""
