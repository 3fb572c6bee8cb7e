"""The harness: specification, runner, store, measurement and command line."""
