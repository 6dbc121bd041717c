"""The HTML page of a run: one file, whose own script and style are the only ones that its policy lets run."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.blocks import Details, Findings, Section, section_data
from pytest_openclaw.reports.facts import answers, findings, targets_table
from pytest_openclaw.reports.html.cells import cell_data
from pytest_openclaw.reports.numbers import one_line, render_duration, render_time
from pytest_openclaw.reports.pages import TITLES
from pytest_openclaw.reports.sections import sections_of, targets_chart
from pytest_openclaw.util.text import counted, valid_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.reports.html.cells import Shown
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.files import JsonObject

FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw">'
SCRIPTS = ("base.js", "cells.js", "panel.js", "main.js")


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """All that the page shows.

    Attributes:
        span_ms: when the first request was sent, and the last one ended.
        baseline: the id of the run that this one is compared with.
        prompts: definitions as `config.json` has them.
    """

    summary: Summary
    cells: Sequence[Shown]
    span_ms: tuple[int, int]
    prompts: Sequence[JsonObject]
    baseline: str | None = None


def render_page(run: ShownRun) -> str:
    """Return the page of a run."""
    targets = [group.target for group in run.summary.groups]
    shown = [
        {"label": one.label, "provider": one.provider, "model": one.model, "level": one.thinking_level}
        for one in targets
    ]
    cells = cell_data(run.cells, run.prompts, targets)
    page = {
        "header": _header(run),
        "sections": [section_data(section) for section in _sections(run) if section.filled],
        "cells": {"targets": shown, "baseline": run.baseline, **cells.matrix},
    }
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, SCRIPTS)) + "})();"
    style = _asset("page.css")
    # Nothing is loaded, sent or framed; only script and style of the page are used.
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    return fill(
        {
            "first_words": FIRST_WORDS,
            "policy": policy,
            "title": html.escape(f"{one_line(run.summary.run_id, 80)} · OpenClaw benchmark"),
            "style": style,
            "islands": f"{element('page', page)}\n{element('details', cells.details)}",
            "script": script,
        },
        _asset("page.html"),
    )


def _header(run: ShownRun) -> JsonObject:
    """Return the top of the page: which run, the ruling of all gates, when it was asked, and notes."""
    summary, (began, ended) = run.summary, run.span_ms
    is_partial = summary.state == "interrupted"
    partial = f"Interrupted: {summary.n_rows} of {summary.n_cells} cells have a row."
    seconds = max(0, ended - began) / 1000
    n_targets = counted(len(summary.groups), "target")
    return {
        "title": one_line(summary.run_id, 80),
        "ruling": summary.verdict if summary.gates else "",
        "said": TITLES[summary.verdict],
        "facts": [
            ("asked", f"{render_time(began, '%Y-%m-%d %H:%M UTC')}, for {render_duration(seconds)}"),
            ("cells", f"{summary.n_rows:,} on {n_targets}"),
        ],
        "notes": [partial] if is_partial else [],
    }


def _sections(run: ShownRun) -> list[Section]:
    summary = run.summary
    why, changes, *others = sections_of(summary)
    return [
        Section(
            id="targets",
            title="Which model may hold the tools?",
            blocks=[
                answers(summary),
                Details(title="Why", block=why.blocks[0]),
                targets_chart(summary.groups),
                targets_table(summary.groups),
            ],
        ),
        Section(id="findings", title="Findings", blocks=[Findings(entries=[*findings(summary)])]),
        Section(
            id=changes.id,
            title=changes.title,
            intro=changes.intro or "A cell is better if it passes now and did not before.",
            blocks=changes.blocks,
        ),
        *others,
    ]


# --- the file ---------------------------------------------------------------------------------------

# Only `<` opens tags, comments and `</script>`; the others hide or reverse text in the file.
_UNSAFE = re.compile(
    "[<>&\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def element(name: str, value: Any) -> str:
    """Return the `<script>` of a class that holds a value as JSON; nothing in it ends the element."""
    text = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", valid_text(_JSON.encode(value)))
    return f'<script type="application/json" class="{name}">{text}</script>'


def fill(values: Mapping[str, str], template: str) -> str:
    """Fill `{{name}}` in a template, once: names inside a value are not filled."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _asset(name: str) -> str:
    text = resources.files("pytest_openclaw.reports.html").joinpath("assets", name).read_text("utf-8")
    return text.replace("\r\n", "\n")
