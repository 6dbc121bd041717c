"""Computes numbers of records: rates with intervals, tiers of tool use, and differences."""
