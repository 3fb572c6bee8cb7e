"""The training corpora of Experiment 1."""
