"""What became of each evaluated item between two rows of a run, and how much of what was lost can be had back."""
