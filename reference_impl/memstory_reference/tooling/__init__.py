"""Tools on the bus, their arguments, and the agent that calls them."""
