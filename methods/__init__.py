"""Post-training methods behind one interface."""
