"""A run as one HTML page: opened from disk, without a server and without a network."""

from pytest_openclaw.reports.html.page import render_page

__all__ = ["render_page"]
