"""Provides general helpers: text, files, clock, errors, redaction, bounded matching."""
