"""Retrieval tasks as values: documents, questions with their gold, and what makes them harder."""

__all__ = ["perturbation", "retrieval"]
