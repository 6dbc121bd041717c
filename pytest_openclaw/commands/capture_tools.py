"""Save what the installed OpenClaw sends to a model, and show what has changed.

A server on loopback takes the place of the model and saves OpenClaw's first
request: tools, system prompt, fields. It captures the release's surfaces
(direct, which is the default, and the profiles minimal, messaging, coding,
full), and with --config a sixth one, configured, which results from your own
config. Each needs a start of OpenClaw, about ten seconds.

The file is a catalogue like those that ship: with --openclaw-catalogue=FILE
suites offer its tools. It contains no names of host and user, no paths, no
times, and no key.

OpenClaw runs in its own folders. OpenClaw itself reads your config and never
writes it; your keys, servers, channels, gateway, MCP servers, hooks and plugins
are left out.

Exit status: 0 done, 2 wrong usage, 4 an error; with --check 1 if a surface has
changed, whether or not the file was saved.

Example:
  pytest-openclaw capture-tools
  pytest-openclaw capture-tools --config ~/.openclaw/openclaw.json
  pytest-openclaw capture-tools --against old.json --check --out -
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.commands.result import CommandResult, catalogue_of, write_over_ours
from pytest_openclaw.core.errors import OpenClawError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_openclaw.stats.drift import ComparedSurface, Drift
    from pytest_openclaw.tools.catalogue import Catalogue

DRIFTED = 1
STDOUT = "-"
FIRST_WORDS = '{\n "release": "openclaw-'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `capture-tools`."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="capture the surface of this config, too")
    parser.add_argument("--model", metavar="PROVIDER/ID", help="which model of the config (its agent's)")
    parser.add_argument("--agent", metavar="ID", help="which agent of the config (its default agent)")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="the catalogue (openclaw-RELEASE.json); - writes none"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="what to compare with (the one that ships)",
    )
    parser.add_argument("--check", action="store_true", help="end with 1 if a surface has changed")


def run(arguments: argparse.Namespace) -> CommandResult:
    """Capture, save, compare."""
    from pytest_openclaw.providers.openclaw.capture import capture
    from pytest_openclaw.reports.drift_text import listed, render_drift
    from pytest_openclaw.tools.captured import gather
    from pytest_openclaw.tools.catalogue import catalogue_in

    if arguments.config is None and (arguments.model or arguments.agent):
        raise OpenClawError("--model and --agent are those of a config: give --config, too")
    before = catalogue_of(arguments.against)
    received = capture(os.environ, arguments.config, model=arguments.model, agent=arguments.agent)
    release = f"openclaw-{received.release}"
    data = gather(received.sent, release=release, taken=f"{datetime.now(UTC):%Y-%m-%d}")
    out = None if arguments.out == STDOUT else Path(arguments.out or f"{release}.json")
    if out:
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        write_over_ours(out, text, FIRST_WORDS, "catalogue")
    now = catalogue_in(data)
    drifts = [*drifts_between(before, now)]
    added, removed = _deferred(before, now)
    changed = [drift for drift in drifts if drift.is_any and drift.beside == drift.surface]
    has_changed = bool(added or removed or changed)
    notes = [*received.notes]
    if missing := data["about"]["not_described"]:
        notes.append(f"behind the bridge, but on no surface, so left out: {', '.join(missing)}")
    return CommandResult(
        lines=[
            *([f"wrote {out}, {out.stat().st_size / 1000:.0f} KB"] if out else []),
            f"{release}, beside {before.source}",
            "",
            *render_drift(drifts),
            *listed("new behind the bridge", added, ""),
            *listed("gone from behind the bridge", removed, ""),
        ],
        data={
            "release": release,
            "out": str(out) if out else None,
            "sha256": now.sha256,
            "against": before.source,
            "has_changed": has_changed,
            "surfaces": [asdict(drift) for drift in drifts],
            "deferred": {"added": added, "removed": removed},
            "notes": notes,
        },
        status=DRIFTED if arguments.check and has_changed else 0,
        warnings=notes,
    )


def drifts_between(before: Catalogue, now: Catalogue) -> Iterator[Drift]:
    """Yield the changes of each surface that both have.

    The user's own config is compared with the most similar one.
    """
    from pytest_openclaw.stats.drift import compare_surfaces, nearest

    for name in now.requests:
        beside = name if name in before.surfaces else nearest(now.surface(name), before.surfaces)
        one, other = _surface(before, beside), _surface(now, name)
        if beside != name:  # another config makes another request, so only tools can be compared
            one = replace(one, fields=None, system=None)
        yield compare_surfaces(one, other, surface=name, beside=beside)


def _surface(catalogue: Catalogue, name: str) -> ComparedSurface:
    from pytest_openclaw.stats.drift import ComparedSurface

    request = catalogue.requests.get(name)
    size = catalogue.sizes.get(name, {}).get("bytes_of_the_release")
    return ComparedSurface(
        tools=catalogue.surface(name),
        fields=dict(request["fields"]) if request else None,
        n_bytes=size,
        words="release" if catalogue.sha256 else "ours",
        system=request.get("system") if request else None,
    )


def _deferred(before: Catalogue, now: Catalogue) -> tuple[list[str], list[str]]:
    """Return the tools added and removed behind the bridge by default, regardless of the config."""
    old, new = (set(one.requests.get("direct", {}).get("deferred", one.deferred)) for one in (before, now))
    return sorted(new - old), sorted(old - new)
