"""Hostile texts in suites, replies and model names: rows keep them whole, terminals show them harmless."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

pytestmark = pytest.mark.newest

NOOP = {"type": "noop"}

TEXTS = {
    "nul": "a\0b",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m",
    "bidi": "abc\u202etxt.exe\u202c \u2066x\u2069 \u200f",
    "invisible": "a\u200bb\ufeffc\u00add\u180e\u3164\u2800✔\ufe0f\U000e0101",
    "newlines": "one\r\ntwo\rthree\nfour\x0bfive\x0csix\x85seven\u2028eight\u2029nine",
    "backspace": "safe\b\b\b\bevil\x7f",
    "html": '<script>alert("x")</script> <img src=x onerror=y> &lt; <!-- ',
    "markdown": "| a | b |\n|---|---|\n# title\n```\n[link](javascript:x) ![](x) **b** `c` \\| \\",
    "unicode": "日本語 🎉 e\u0301 \U0001f468\u200d\U0001f469 \ufdfa",
    "braces": "{0} {x} %s %(y)s $HOME $(id) `id` ; rm -rf",
    "json": "[" * 3000 + "]" * 3000,
}

HIDDEN = "[\xad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe0f\ufeff\U000e0101]"


def write(project: Any, prompts: list[dict[str, Any]], name: str = "prompts_a.json") -> None:
    """Write a JSON suite with any keys that the prompts have."""
    path = project.folder / "benchmarks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(prompts))


def assert_harmless(session: Any) -> None:
    """Nothing on the terminal moves the cursor, rings the bell, reverses text or is invisible."""
    lines = [
        line
        for line in session.text.split("\n")
        if re.search(HIDDEN, line) or not line.replace("\t", "").isprintable()
    ]
    assert lines == []


def tables_of(page: str) -> list[list[int]]:
    """Return for each table of a Markdown page the number of cells of its lines."""
    tables: list[list[int]] = [[]]
    for line in page.split("\n"):
        if line.startswith("|"):
            tables[-1].append(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)))
        elif tables[-1]:
            tables.append([])
    return [table for table in tables if table]


def assert_sound_page(session: Any, rows: int = 1) -> str:
    """`summary.md` has whole tables, without foreign HTML and control characters; return it."""
    page: str = (session.run_dir / "summary.md").read_bytes().decode("utf-8")
    tables = tables_of(page)
    assert len(tables[0]) == rows + 2
    assert all(set(table) == {table[0]} for table in tables)
    assert "<" not in re.sub("</?code>", "", page)
    assert [line for line in page.split("\n") if not line.isprintable() or re.search(HIDDEN, line)] == []
    # No foreign text starts a heading, a fence or a list.
    start = r"# OpenClaw benchmark |## [A-Z]|\||- |\d+ cells? on |Successful cells\. |The wait for |$"
    assert [line for line in page.split("\n") if not re.match(start, line)] == []
    return page


def test_hostile_texts_everywhere_in_a_suite(project: Any) -> None:
    """Prompt, name, category, tags and system prompt may contain anything; only the row shows it raw."""
    write(
        project,
        [
            {
                "id": f"{key}-{verdict}",
                "name": text,
                "category": text,
                "tags": [text, "common"],
                "system": text,
                "prompt": f"say {text}",
                "validator": NOOP if verdict == "any" else {"type": "exact", "value": "not this"},
                "note": {text: [text]},
            }
            for key, text in TEXTS.items()
            for verdict in ("any", "miss")
        ],
    )

    session = project.run("-v", "-ra", "--junitxml=report.xml", "-k", "common")

    session.outcomes(passed=len(TEXTS), failed=len(TEXTS))
    found = {row["prompt_id"]: row for row in session.rows}
    for key, text in TEXTS.items():
        for row in (found[f"{key}-any"], found[f"{key}-miss"]):
            assert (row["prompt_name"], row["category"], row["raw_output"]) == (text, text, text)
    prompts = {prompt["id"]: prompt for prompt in session.load("config.json")["prompts"]}
    assert [prompts[f"{key}-any"]["extra"]["note"] for key in TEXTS] == [
        {text: [text]} for text in TEXTS.values()
    ]
    assert_harmless(session)
    assert_sound_page(session)
    assert len(ET.parse(project.folder / "report.xml").findall(".//testcase")) == 2 * len(TEXTS)


def test_violations_that_quote_hostile_answers(project: Any) -> None:
    """A violation may quote the reply; reports show it harmless and on one line."""
    texts = [text for key, text in TEXTS.items() if key != "json"]
    rules = [
        {"type": "one_of", "values": ["yes"]},
        {"type": "json_keys", "required_keys": ["<b>|x"], "key_rules": {"<b>|x": {"type": "number"}}},
    ]
    write(
        project,
        [
            {"id": f"P{number}", "name": text, "prompt": f"say {text}", "validator": rules[0]}
            for number, text in enumerate(texts)
        ]
        + [
            {
                "id": f"J{number}",
                "name": text,
                "prompt": "say " + json.dumps({"<b>|x": text}),
                "validator": rules[1],
            }
            for number, text in enumerate(texts)
        ],
    )

    session = project.run()

    session.outcomes(failed=2 * len(texts))
    assert all(row["objective_pass"] is False and row["violation"] for row in session.rows)
    assert_harmless(session)
    assert "alert" in assert_sound_page(session)


@pytest.mark.parametrize(
    ("prompt_id", "in_page"),
    [
        pytest.param("<b>P|1", r"&lt;b&gt;P\|1", id="html-and-table"),
        pytest.param("`*_#P", r"\`\*\_\#P", id="markdown"),
        pytest.param("日本🎉", "日本🎉", id="unicode"),
        pytest.param("P" * 300, "P" * 40, id="long"),
        pytest.param("../../P", None, id="path"),
    ],
)
def test_odd_ids(plain_project: Any, prompt_id: str, in_page: str | None) -> None:
    """An id that pytest accepts runs, whatever it means in Markdown; any other is refused."""
    write(
        plain_project, [{"id": prompt_id, "prompt": "say no", "validator": {"type": "exact", "value": "yes"}}]
    )

    session = plain_project.run()

    assert_harmless(session)
    if in_page is None:
        assert session.status == pytest.ExitCode.INTERRUPTED
        assert "which pytest's node ids cannot contain" in session.text
    else:
        session.outcomes(failed=1)
        assert [row["prompt_id"] for row in session.rows] == [prompt_id]
        assert in_page in assert_sound_page(session)
        again = plain_project.run(
            "--collect-only", "-q", target=f"benchmarks/prompts_a.json::{prompt_id}[scripted/m]"
        )
        assert again.status == 0


@pytest.mark.nightly
def test_ten_megabytes(project: Any) -> None:
    """A prompt and a reply of 10 MB run, and fail; a row keeps 64 KiB and every output a few lines."""
    long = "é" * 5_000_000
    write(
        project,
        [
            {"id": "P1", "prompt": f"say {long}", "validator": {"type": "exact", "value": long}},
            {"id": "P2", "prompt": f"say {long}x", "validator": {"type": "exact", "value": long}},
            {"id": "P3", "prompt": "say yes", "system": long, "tags": [long], "validator": NOOP},
        ],
    )

    session = project.run()

    session.outcomes(passed=1, failed=2)
    assert {row["prompt_id"]: row["truncated"] for row in session.rows} == {
        "P1": True,
        "P2": True,
        "P3": False,
    }
    assert all(len(row["raw_output"].encode()) <= 64 * 1024 for row in session.rows)
    assert session.row("P2")["violation"]
    assert len(session.text) < 20_000
    assert (session.run_dir / "results.jsonl").stat().st_size < 1_000_000
    assert (session.run_dir / "summary.md").stat().st_size < 20_000


@pytest.mark.nightly
def test_answers_that_would_hang_a_judge(project: Any) -> None:
    """A catastrophic pattern and deeply nested brackets end in time, as a fault and as failures."""
    tower = '{"a":' * 50_000
    write(
        project,
        [
            {
                "id": "P1",
                "prompt": "say " + "a" * 60,
                "validator": {"type": "regex_fullmatch", "pattern": "(a|aa)+b"},
            },
            {
                "id": "P2",
                "prompt": f"say {tower}",
                "validator": {"type": "json_keys", "required_keys": ["a"]},
            },
            {
                "id": "P3",
                "prompt": "say " + "[" * 100_000,
                "validator": {"type": "json_schema", "schema": {"type": "object"}},
            },
            {
                "id": "P4",
                "prompt": "say " + "`a" * 100_000,
                "validator": {"type": "tool_invocation", "expected_tools": ["b"]},
            },
            {"id": "P5", "prompt": "say yes", "validator": {"type": "exact", "value": "yes"}},
        ],
    )

    session = project.run()

    found = {row["prompt_id"]: (row["failure_type"], row["objective_pass"]) for row in session.rows}
    assert found.pop("P1") in [("harness_error", None), (None, False)]
    assert found == {"P2": (None, False), "P3": (None, False), "P4": (None, False), "P5": (None, True)}


ODD_MODELS = [
    "m[0]",
    "m]x[",
    "a::b",
    "a::b[c]::d",
    "|a|b|",
    "<b>x</b>",
    "`_#",
    "../../up",
    "/abs/olute",
    "a\\b",
    "日本🎉",
    "e\u0301",
    "M",
    "m",
    "x" * 600,
    "x" * 599 + "y",
    "$(id);&",
    "'q'\"r\"",
    "{0}%s",
    "-n",
    "@highest",
    "m-r1",
    "CON",
    "a@low@b",
]


def test_odd_model_names(project: Any) -> None:
    """Every name without spaces and hidden characters is a model: in its row, its files, each report."""
    write(project, [{"id": "P1", "prompt": "say no", "validator": {"type": "exact", "value": "yes"}}])
    specs = [f"--openclaw-models=scripted/{model}" for model in ODD_MODELS]

    session = project.run(*specs, "-v", models=None)

    session.outcomes(failed=len(ODD_MODELS))
    assert sorted(row["model"] for row in session.rows) == sorted(ODD_MODELS)
    assert [(target["model"], target["n_cells"]) for target in session.load("config.json")["targets"]] == [
        (model, 1) for model in ODD_MODELS
    ]
    assert sorted(group["model"] for group in session.summary["groups"]) == sorted(ODD_MODELS)
    assert all(group["n_total"] == 1 for group in session.summary["groups"])
    snapshots = [path.name for path in session.run_dir.iterdir() if path.name.startswith("resources_")]
    assert len({name.casefold() for name in snapshots}) == 2 * len(ODD_MODELS)
    assert all(
        re.fullmatch(r"resources_[A-Za-z0-9_.-]{1,160}_(before|after)\.txt", name) for name in snapshots
    )
    assert_harmless(session)
    assert_sound_page(session, rows=len(ODD_MODELS))


@pytest.mark.parametrize("model", ["m[0]", "m]x[", "a::b", "a::b[c]::d", "../../up", "日本🎉", "a\\b"])
def test_an_odd_model_is_chosen_by_its_node_id(plain_project: Any, model: str) -> None:
    """The node id that pytest shows for a cell selects that cell again."""
    write(plain_project, [{"id": "P1", "prompt": "say yes", "validator": NOOP}])
    specs = [f"--openclaw-models=scripted/{name}" for name in ODD_MODELS]

    session = plain_project.run(
        *specs, models=None, target=f"benchmarks/prompts_a.json::P1[scripted/{model}]"
    )

    assert [row["model"] for row in session.rows] == [model]


def test_what_a_server_says_of_itself(project: Any) -> None:
    """The model's name, the finish reason and a fault's message are foreign texts too."""
    hostile = "\x1b[31m<b>|x\u202e\n# y"
    conftest = project.folder / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        .replace('finish_reason="stop"', f"finish_reason={hostile!r}, effective_model={hostile!r}")
        .replace('message="bad"', f"message={hostile!r}")
    )
    write(
        project,
        [
            {"id": "P1", "prompt": "say no", "validator": {"type": "exact", "value": "yes"}},
            {"id": "P2", "prompt": "broken", "validator": NOOP},
        ],
    )

    session = project.run("-v", "-ra")

    session.outcomes(failed=1, errors=1)
    assert (session.row("P1")["effective_model"], session.row("P1")["finish_reason"]) == (hostile, hostile)
    assert_harmless(session)
    assert_sound_page(session)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("assert False, reply.text", id="assertion"),
        pytest.param("assert reply.text == 'yes'", id="comparison"),
        pytest.param("assert reply.text.splitlines() == ['yes'] * 5", id="lists"),
        pytest.param("print(reply.text); assert False", id="captured-output"),
        pytest.param("raise ValueError(reply.text)", id="exception"),
        pytest.param("raise ValueError(reply.text + chr(0xD800))", id="exception-with-half-a-character"),
        pytest.param("__import__('pytest').fail(reply.text)", id="fail"),
        pytest.param("__import__('pytest').fail(reply.text, pytrace=False)", id="fail-without-trace"),
        pytest.param("__import__('pytest').skip(reply.text)", id="skip"),
    ],
)
def test_a_python_benchmark_that_quotes_the_answer(plain_project: Any, body: str) -> None:
    """A test's message about a hostile reply reaches the row whole and the terminal harmless."""
    answer = TEXTS["ansi"] + TEXTS["bidi"]
    folder = plain_project.folder / "benchmarks"
    folder.mkdir()
    (folder / "test_hostile.py").write_text(
        "import pytest\n\n"
        f"@pytest.mark.openclaw(id='R1', prompt={'say ' + answer!r})\n"
        f"def test_answer(reply):\n    {body}\n"
    )

    session = plain_project.run("-ra")

    assert session.row("R1")["raw_output"] == answer
    assert_harmless(session)


def test_half_a_character_in_a_traceback_under_workers(project: Any) -> None:
    """An exception with half a surrogate pair reaches the controller, and the next cell is asked."""
    conftest = project.folder / "conftest.py"
    conftest.write_text(
        conftest.read_text().replace('"the provider is broken"', '"broken: \\ud800 \\x1b[31m"')
    )
    write(
        project,
        [
            {"id": "P1", "prompt": "crash", "validator": NOOP},
            {"id": "P2", "prompt": "say yes", "validator": NOOP},
        ],
    )

    session = project.run("--openclaw-concurrency=1")

    session.outcomes(errors=1, passed=1)
    assert session.row("P1")["failure_type"] == "harness_error"
    assert "RuntimeError: broken: " in session.text
    assert_harmless(session)


def test_a_terminal_that_knows_ascii_alone(plain_project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If only ASCII can be shown, everything else is escaped, and the files are UTF-8 all the same."""
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    write(
        plain_project,
        [{"id": "日本", "name": "é🎉", "prompt": "say 🎉", "validator": {"type": "exact", "value": "ü"}}],
    )

    session = plain_project.run("-v", models="scripted/日本", apart=True)

    session.outcomes(failed=1)
    assert session.text.isascii()
    assert "INTERNALERROR" not in session.text
    assert [(row["prompt_id"], row["model"], row["raw_output"]) for row in session.rows] == [
        ("日本", "日本", "🎉")
    ]
    assert "日本" in assert_sound_page(session)
