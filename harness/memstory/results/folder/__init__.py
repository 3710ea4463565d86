"""What a run leaves in its folder, and who may write there."""
