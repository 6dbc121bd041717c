"""Finds tool calls in replies, reads tool catalogs, plays scripted worlds."""
