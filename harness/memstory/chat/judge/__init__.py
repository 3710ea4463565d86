"""A language model that says whether an answer fits given facts, and the exam that it has to pass first."""
