"""Reads finished runs: merge, rescore, resume, compare, history."""
