"""`memstory-reference memory`: what is remembered, shown, exported and deleted."""

__all__ = ["layers_desk", "manager_desk", "opened_pipeline", "opened_turns", "turns_desk"]
