"""Turns a reply into a verdict and an outcome."""
