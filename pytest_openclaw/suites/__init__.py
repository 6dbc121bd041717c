"""Reads suites and target specs, and combines them into cells with stable ids."""
