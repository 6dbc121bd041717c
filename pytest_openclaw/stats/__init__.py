"""Rows → rates, percentiles, intervals, tiers, gates."""
