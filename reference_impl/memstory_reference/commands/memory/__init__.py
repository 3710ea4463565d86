"""`memstory-reference memory`: what is remembered, shown, exported and deleted."""
