"""`export`: rows as CSV."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.cli import main
from pytest_openclaw.parts.export import render_csv
from pytest_openclaw.values.run_files import load_schema
from tests.unit.runs.stored_runs import A, B, row, store
from tests.walk.screens import run_on_terminal

MISS = {"objective_pass": False, "violation": "no"}
EXPORT = (sys.executable, "-m", "pytest_openclaw", "export")
FORMULA = '=HYPERLINK("http://x","y")'


@pytest.fixture
def runs(project):
    records = [
        row(A, "P1", raw_output='a "b", c\r\nd;\te', parsed_output={"words": 5}, tool_calls=("df",)),
        row(A, "P2", raw_output=FORMULA, ttft_ms=None, **MISS),
        row(B, "P1", raw_output="ünï 🎉", extra={"x_lab": {"a": [1]}}),
        row(A, "P2", raw_output="second", ended_at_ms=5, **MISS),
    ]
    store(project / "runs/one", records, tail=b'{"torn')
    return project / "runs"


def _read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _exported(*words):
    assert main(["export", "one", *words, "--into", "rows.csv"]) == 0
    file = Path("rows.csv")
    text = file.read_bytes().decode()
    file.unlink()
    return _read(text)


def test_every_field_is_a_column(runs):
    """Columns are in the order of a row, the seed's fields first and a plugin's keys last."""
    rows = _exported()
    first = json.loads((runs / "one/results.jsonl").read_text().splitlines()[0])

    assert list(rows[0]) == [*first, "x_lab"]
    assert set(rows[0]) == {*load_schema("row")["properties"], "x_lab"}


def test_values_are_flat(runs):
    """Null is empty, lists and objects are JSON, and any text can be read back unchanged."""
    one, three, two = _exported()

    keys = [(r["prompt_id"], r["model"]) for r in (one, three, two)]
    assert keys == [("P1", "a"), ("P1", "b"), ("P2", "a")]
    assert one["raw_output"] == 'a "b", c\r\nd;\te'
    assert (json.loads(one["parsed_output"]), json.loads(one["tool_calls"])) == ({"words": 5}, ["df"])
    assert (one["success"], two["objective_pass"]) == ("true", "false")
    assert (one["violation"], one["category"]) == ("", "")
    assert (three["raw_output"], three["x_lab"], one["x_lab"]) == ("ünï 🎉", '{"a": [1]}', "")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("=1+1", id="equals"),
        pytest.param("  =1", id="blanks"),
        pytest.param("\ufeff=1", id="bom"),
        pytest.param("\u200b\u202e=1", id="unseen"),
        pytest.param("\xad\u180e\u3164\ufe0f=1", id="ignorable"),
        pytest.param("\uff1d1", id="full-width"),
        pytest.param("'=1", id="guarded-already"),
    ],
)
def test_no_text_becomes_a_formula(text):
    """Such a text gets a leading ', which can be removed again."""
    (found,) = _read("".join(render_csv([{"a": text, "b": 1}], ["a", "b"])))
    assert found["a"] == f"'{text}"


@given(texts=st.lists(st.text(), min_size=1))
def test_every_text_survives(texts):
    """Quoting and guard can always be undone, and no CSV cell begins like a formula."""
    text = "".join(render_csv([{"a": one, "b": 1} for one in texts], ["a", "b"]))

    read = [r["a"] for r in _read(text)]
    assert [one.removeprefix("'") for one in read] == texts
    assert not any(one.lstrip()[:1] in set("=+-@") and one.lstrip() for one in read)


def test_stdout_gets_the_bytes_that_a_file_gets(runs):
    """Written to a pipe, no character of a reply is escaped, and its line ends are kept."""
    done = subprocess.run([*EXPORT, "one"], capture_output=True, timeout=600)
    assert main(["export", "one", "--into", "rows.csv"]) == 0

    assert done.returncode == 0
    assert done.stdout == Path("rows.csv").read_bytes()
    assert done.stdout.count(b"\r\n") == 5
    assert b"is not finished" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such terminal")
def test_replies_are_escaped_on_a_terminal(runs):
    """Printed on a terminal, escape sequences are escaped."""
    store(runs / "bad", [row(A, "P1", raw_output="\x1b[2J")])

    shown = run_on_terminal("pytest-openclaw export bad", runs.parent, {}, columns=80, color=False)

    assert shown.status == 0
    assert "\x1b" not in shown.raw
    assert "\\x1b[2J" in shown.raw
