"""Finds calls that a reply writes into its text."""

from pytest_openclaw.tools.leaks.finding import find_leaks

__all__ = ["find_leaks"]
