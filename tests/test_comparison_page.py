"""The output on docs/comparison.md is that of the commands."""

import re
from pathlib import Path
from typing import get_args

from pytest_openclaw.cli import main
from pytest_openclaw.parts.baseline import ACROSS as DIFFERENCES
from pytest_openclaw.parts.baseline.comparison import Reason
from pytest_openclaw.reports.numbers import words
from tests.unit.runs.stored_runs import A, B, definition, row, store

PAGE = (Path(__file__).parent.parent / "docs" / "comparison.md").read_text("utf-8")


def _rows(target, *, failing, step, in_flight):
    def passes(n):
        return n % 6 != 0 and n > failing

    return [
        row(target, f"P{n}", objective_pass=passes(n), e2e_ms=1000 + step * n, in_flight=in_flight)
        for n in range(1, 37)
    ]


def test_the_comparison_is_what_is_printed(tmp_path, monkeypatch, capsys):
    """Two stored runs, compared by the command."""
    monkeypatch.chdir(tmp_path)
    for name, failing, step, in_flight, version in (
        ("20260213_235930", 0, 0, 1, "0.5.1"),
        ("20260214_101500", 15, 40, 4, "0.6.0"),
    ):
        rows = [
            one for target in (A, B) for one in _rows(target, failing=failing, step=step, in_flight=in_flight)
        ]
        changes = {f"P{n}": {"system": "x"} for n in (3, 4) if failing}
        prompts = [definition(f"P{n}", **changes.get(f"P{n}", {})) for n in range(1, 37)]
        serving = {B.label: {"server": {"server_version": version}}}
        # The candidate was not asked the last one of its cells.
        store(tmp_path / "runs" / name, rows[: len(rows) - bool(failing)], prompts=prompts, serving=serving)

    assert main(["compare", "20260213_235930", "last"]) == 0

    shown = PAGE.split("$ pytest-openclaw compare 20260213_235930 last\n")[1].split("```")[0]
    assert capsys.readouterr().out.strip() == shown.strip()


def test_every_reason_and_option_is_documented():
    """The table has all reasons, and all options that compare anyway."""
    assert set(words("set_aside")) == set(get_args(Reason))
    assert all(reason in PAGE for reason in words("set_aside").values())
    assert set(words("across").values()) == set(DIFFERENCES) == set(re.findall(r"`--across=(\w+)` \|", PAGE))
