"""The HTML pages: one file each, whose own script and style are the only ones that its policy lets run."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.blocks import Details, Findings, Section, Table, section_data
from pytest_openclaw.reports.facts import answers, findings, targets_table
from pytest_openclaw.reports.html.cells import cell_data
from pytest_openclaw.reports.numbers import DASH, one_line, render_duration
from pytest_openclaw.reports.sections import sections_of, targets_chart
from pytest_openclaw.util.text import counted, valid_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.reports.html.cells import Shown
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.rows import Record

FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw">'
SCRIPTS = {"page.html": ("base.js", "cells.js", "panel.js", "main.js"), "index.html": ("base.js", "main.js")}
NAME_WIDTH = 64
_RULINGS = {
    "passed": "all gates passed",
    "failed": "a gate failed",
    "no_verdict": "gates without a verdict",
    "not_gated": "no gates",
}
# A page is sent around, so it does not show the addresses of servers.
_PRIVATE = frozenset({"base_url", "key_env"})
_SETTINGS = ("repeat", "until_conclusive", "stream", "temperature", "timeout_s", "retries", "verdict")
_SERVER = ("server", "server_version", "quantisation", "context_length", "digest")


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """All that the page shows.

    Attributes:
        cells: of a large run a sample.
        unshown: the rows of all other cells, each with the one of the baseline.
        baseline: the id of the run that this one is compared with.
        prompts: definitions as `config.json` has them, of a sample those of its cells.
        notes: what is worth knowing of the run's files, such as a line that is torn.
    """

    summary: Summary
    cells: Sequence[Shown]
    prompts: Sequence[JsonObject]
    config: JsonObject
    inventory: JsonObject
    baseline: str | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    unshown: Sequence[tuple[Record, Record | None]] = ()

    @property
    def pairs(self) -> list[tuple[Record, Record | None]]:
        """The row of each cell, shown or not, with the one of the baseline."""
        return [*((cell.record, cell.before) for cell in self.cells), *self.unshown]


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
        "cells": {
            "targets": shown,
            "prompts": cells.prompts,
            "fields": cells.fields,
            "columns": cells.columns,
            "baseline": run.baseline,
        },
    }
    islands = [element("page", page), element("details", cells.details)]
    return render_file(f"{one_line(run.summary.run_id, 80)} · OpenClaw benchmark", "page.html", islands)


def _header(run: ShownRun) -> JsonObject:
    """Return the top of the page: which run, the ruling of all gates, when it was asked, and notes."""
    summary, pairs = run.summary, run.pairs
    notes = [one_line(note, 300) for note in run.notes]
    if summary.state == "interrupted":
        notes.insert(0, f"Interrupted: {summary.n_rows} of {summary.n_cells} cells have a row.")
    if run.unshown:
        notes.append(
            f"A sample: {len(run.cells):,} of {len(pairs):,} cells can be opened below, for each target some "
            "of every way to end. All figures, tables and charts are of all cells."
        )
    began = min((record.started_at_ms for record, _ in pairs), default=summary.generated_at_ms)
    ended = max((record.ended_at_ms for record, _ in pairs), default=began)
    asked = datetime.fromtimestamp(began / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    n_targets = counted(len(summary.groups), "target")
    return {
        "title": one_line(summary.run_id, 80),
        "ruling": summary.verdict if summary.gates else "",
        "said": _RULINGS[summary.verdict],
        "facts": [
            ("asked", f"{asked} UTC, for {render_duration(max(0, ended - began) / 1000)}"),
            ("cells", f"{summary.n_rows:,} on {n_targets}"),
        ],
        "notes": notes,
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
        _how_it_was_asked(run.config, run.inventory),
    ]


def _how_it_was_asked(config: JsonObject, inventory: JsonObject) -> Section:
    """Return settings, machine, servers and versions, as far as the run's files have them."""
    host, cpu, packages = (_object(inventory.get(name)) for name in ("host", "cpu", "packages"))
    machine = {
        "machine": host.get("name"),
        "processor": cpu.get("model"),
        "cores": cpu.get("usable_cores"),
        "memory in bytes": inventory.get("memory_total_bytes"),
        "GPU": ", ".join(_shown(_object(gpu).get("name")) for gpu in inventory.get("gpus") or ()),
        "system": " ".join(_shown(host[key]) for key in ("system", "release", "machine") if host.get(key)),
        "Python": _object(inventory.get("python")).get("version"),
        **packages,
    }
    shapes = {
        f"{provider}: {key}": value
        for provider, shape in _object(config.get("providers")).items()
        for key, value in _object(shape).items()
        if key not in _PRIVATE
    }
    limits = _object(config.get("concurrency"))
    flights = {"everywhere": limits.get("everywhere"), **_object(limits.get("by_provider"))}
    settings = {
        **{name: config[name] for name in _SETTINGS if name in config},
        **{f"in flight, {endpoint}": limit for endpoint, limit in flights.items()},
        **shapes,
    }
    servers = [
        [label, *(_shown(server.get(name)) for name in _SERVER)]
        for label, facts in _object(inventory.get("targets")).items()
        if (server := _object(_object(facts).get("server")))
    ]
    tables = [
        _pairs("Settings", settings),
        _pairs("Machine and versions", machine),
        Table(head=("target", *_SERVER), rows=servers, words=_SERVER, caption="Servers"),
    ]
    return Section(
        id="asked",
        title="How it was asked",
        blocks=[Details(title=table.caption, block=table) for table in tables],
    )


def _pairs(caption: str, values: Mapping[str, Any]) -> Table:
    known = {name: value for name, value in values.items() if value not in (None, "")}
    rows = [[name.replace("_", " "), _shown(value)] for name, value in known.items()]
    return Table(head=("what", "value"), rows=rows, words=("value",), caption=caption)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return DASH if value is None else one_line(str(value), 60)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# --- the file ---------------------------------------------------------------------------------------

# `<` alone opens tags, comments and `</script>`; the others hide or reverse text in the file.
_UNSAFE = re.compile(
    "[<>&\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def element(name: str, value: Any) -> str:
    """Return the `<script>` of a class that holds a value as JSON; nothing in it ends the element."""
    text = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", valid_text(_JSON.encode(value)))
    return f'<script type="application/json" class="{name}">{text}</script>'


def fill(values: Mapping[str, str], template: str) -> str:
    """Fill `{{name}}` in a template, once: what a value holds is never filled again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def render_file(title: str, body: str, islands: Sequence[str]) -> str:
    """Return the file of a page: a body of `assets/` with its script and style, and its data in islands."""
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, SCRIPTS[body])) + "})();"
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
            "title": html.escape(title),
            "style": style,
            "body": _asset(body),
            "islands": "\n".join(islands),
            "script": script,
        },
        _asset("frame.html"),
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _asset(name: str) -> str:
    text = resources.files("pytest_openclaw.reports.html").joinpath("assets", name).read_text("utf-8")
    return text.replace("\r\n", "\n")
