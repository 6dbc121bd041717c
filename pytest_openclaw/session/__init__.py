"""Runs a pytest session: settings, preflight, items, execution and reporting hooks."""
