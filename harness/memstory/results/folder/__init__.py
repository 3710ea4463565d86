"""What a run leaves in its folder, and who may write there."""

__all__ = ["holding", "pack", "recordings_file", "results_file", "spool", "whole_files"]
