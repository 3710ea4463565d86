"""How a run ends, whatever its targets do: with its own exit code, in time, and with nothing left behind."""
