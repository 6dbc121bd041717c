"""A run as one HTML page: opened from disk, without a server and without a network.

`shown.py` is what the page takes; `cells.py` and `sections.py` turn it into data, `charts.py` into charts,
`page.py` puts them into one file with the script and the style of `assets/`.
"""

from pytest_openclaw.reports.html.page import render_index, render_page

__all__ = ["render_index", "render_page"]
