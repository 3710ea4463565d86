"""Sections of the report on what agents and models say."""
