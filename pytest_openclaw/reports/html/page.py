"""The page itself: one file, whose own script and style are the only ones that its policy lets run."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html.cells import cell_data
from pytest_openclaw.reports.html.header import header_of
from pytest_openclaw.reports.html.island import TextPool, element, fill
from pytest_openclaw.reports.html.sections import sections_of
from pytest_openclaw.reports.numbers import one_line

if TYPE_CHECKING:
    from pytest_openclaw.reports.html.shown import ShownRun

FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw">'
SCRIPTS = (
    "text.js",
    "dom.js",
    "data.js",
    "filter.js",
    "address.js",
    "panel.js",
    "matrix.js",
    "charts.js",
    "main.js",
)


def render_page(run: ShownRun) -> str:
    """Return the page."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "})();"
    style = _asset("page.css")
    return fill(
        {
            "first_words": FIRST_WORDS,
            "policy": _policy(script, style),
            "title": html.escape(f"{one_line(run.summary.run_id, 80)} · OpenClaw benchmark"),
            "style": style,
            "islands": "\n".join(_islands(run)),
            "script": script,
        },
        _asset("page.html"),
    )


def _islands(run: ShownRun) -> list[str]:
    pool = TextPool()
    targets = [group.target for group in run.summary.groups]
    cells = cell_data(run.cells, run.prompts, targets, pool)
    page: dict[str, Any] = {
        "header": header_of(run),
        "sections": sections_of(run),
        "targets": [
            {"label": target.label, "provider": target.provider, "model": target.model,
             "level": target.thinking_level}
            for target in targets
        ],
        "reasons": cells.reasons,
        "prompts": cells.prompts,
        "fields": cells.fields,
        "columns": cells.columns,
        "baseline": run.earlier.run_id if run.earlier else None,
    }  # fmt: skip
    return [
        element("page", page),
        *(element("details", part, first=first) for first, part in cells.detail_chunks()),
        *(element("texts", part, first=first) for first, part in pool.chunks()),
    ]


def _policy(script: str, style: str) -> str:
    """Nothing is loaded, sent or framed; only script and style of the page are used."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _asset(name: str) -> str:
    text = resources.files("pytest_openclaw.reports.html").joinpath("assets", name).read_text("utf-8")
    return text.replace("\r\n", "\n")
