"""What the ports are made of on this machine; an adapter is imported only when it was chosen."""
