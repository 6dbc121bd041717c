"""Computes rates, intervals and tiers: records to groups to a summary; differences and gates."""
