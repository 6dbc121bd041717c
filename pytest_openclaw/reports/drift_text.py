"""What has changed between two catalogues → lines of at most 80 columns, and JSON."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted
from pytest_openclaw.reports.numbers import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.stats.drift import Drift, ToolChange

WIDTH = 80
FORM_WIDTH = 60


def render_drift(drifts: Sequence[Drift]) -> list[str]:
    """Return a line for each surface and its changes; equal changes are listed once."""
    lines: list[str] = []
    shown_text: dict[str, str] = {}
    for drift in drifts:
        lines.append(_head(drift))
        lines += listed("new", drift.added)
        lines += listed("gone", drift.removed)
        lines += ["  the order has changed"] if drift.reordered else []
        for name, (before, now) in drift.fields.items():
            lines += _wrapped(f"field {name}: {shown_field(before)} -> {shown_field(now)}")
        if drift.beside != drift.surface:  # another config's: that they differ is enough
            lines += listed("with other parameters", (change.name for change in drift.changed))
            continue
        again: dict[str, list[str]] = {}
        for change in drift.changed:
            first = shown_text.setdefault(repr(change), drift.surface)
            if first == drift.surface:
                lines += _change(change)
            else:
                again.setdefault(first, []).append(change.name)
        for first, names in again.items():
            lines += listed(f"as in {first}", names)
        lines += listed("other sections of the system prompt", drift.sections)
    return lines


def shown_field(value: str | None) -> str:
    """Return a field's value in a line."""
    return "none" if value is None else shorten(value, FORM_WIDTH)


def _head(drift: Drift) -> str:
    beside = "" if drift.beside == drift.surface else f", beside {drift.beside}"
    same = "" if drift.is_any else ": the same"
    n = counted(drift.n_tools, "tool")
    return f"{drift.surface}{beside}: {n}{_weighs(*drift.n_bytes)}{same}"


def _weighs(before: int | None, now: int | None) -> str:
    if now is None:
        return ""
    if before is None:
        return f", {now / 1000:.1f} KB"
    return f", {now / 1000:.1f} KB {'as before' if before == now else f'(was {before / 1000:.1f})'}"


def _change(change: ToolChange) -> Iterator[str]:
    if not change.takes_other_calls:
        yield f"  {change.name}: other words"
        return
    yield f"  {change.name}{': other words, and' if change.reworded else ''}"
    for what, paths in (
        ("new", change.added),
        ("gone", change.removed),
        ("required now", change.required),
        ("optional now", change.optional),
    ):
        yield from listed(what, paths, "    ")
    for path, (before, now) in change.retyped.items():
        where = path or "arguments"
        yield from _wrapped(f"{where}: {shorten(before, FORM_WIDTH)} -> {shorten(now, FORM_WIDTH)}", "    ")


def listed(what: str, names: Iterable[str], indent: str = "  ") -> list[str]:
    """Return the names after a heading, wrapped; no line without names."""
    joined = ", ".join(names)
    return _wrapped(f"{what}: {joined}", indent) if joined else []


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )
