"""Adapters to other people's backends, one thin module each; a vendor is imported when its target opens."""
