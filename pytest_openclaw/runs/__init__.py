"""Writes a run directory: rows, summary, environment, progress, early stopping."""
