"""Features that are not yet in `parts/`."""
