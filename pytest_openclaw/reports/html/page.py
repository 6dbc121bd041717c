"""The page itself: one file, whose own script and style are the only ones that its policy lets run."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html.cells import cell_data
from pytest_openclaw.reports.html.header import header_of
from pytest_openclaw.reports.html.index import index_data
from pytest_openclaw.reports.html.island import TextPool, element, fill
from pytest_openclaw.reports.html.sections import sections_of
from pytest_openclaw.reports.numbers import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.reports.history_text import Entry
    from pytest_openclaw.reports.html.shown import ShownRun
    from pytest_openclaw.types.targets import Target

FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw">'
SCRIPTS = (
    "text.js", "dom.js", "theme.js", "data.js", "filter.js", "address.js", "panel.js", "matrix.js",
    "charts.js", "main.js",
)  # fmt: skip
INDEX_SCRIPTS = ("text.js", "dom.js", "theme.js", "charts.js", "index.js")


def render_page(run: ShownRun) -> str:
    """Return the page of a run."""
    title = f"{one_line(run.summary.run_id, 80)} · OpenClaw benchmark"
    return _framed(title, _asset("page.html"), SCRIPTS, _islands(run))


def render_index(history: Mapping[Target, Sequence[Entry]], links: Mapping[Path, str]) -> str:
    """Return the page of all runs of a folder.

    Args:
        history: by target, oldest first, with the figures of each suite.
        links: of each run's directory, the address that the page has for it.
    """
    return _framed(
        "All runs · OpenClaw benchmark",
        _asset("index.html"),
        INDEX_SCRIPTS,
        [element("page", index_data(history, links))],
    )


def _framed(title: str, body: str, scripts: Sequence[str], islands: Sequence[str]) -> str:
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in scripts) + "})();"
    style = _asset("page.css")
    return fill(
        {
            "first_words": FIRST_WORDS,
            "policy": _policy(script, style),
            "title": html.escape(title),
            "style": style,
            "body": body,
            "islands": "\n".join(islands),
            "script": script,
        },
        _asset("frame.html"),
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
