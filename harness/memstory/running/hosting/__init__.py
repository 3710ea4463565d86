"""Targets that are guarded, or in a process that can be killed."""
