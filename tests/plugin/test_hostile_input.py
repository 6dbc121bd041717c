"""Hostile texts in suites, replies and model names: rows keep them whole, terminals show them harmless."""

import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ET

import pytest

from tests.plugin.conftest import NOOP, YES

pytestmark = pytest.mark.newest

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


def assert_harmless(session):
    """Nothing on the terminal moves the cursor, rings the bell, reverses text or is invisible."""
    lines = [
        line
        for line in session.text.split("\n")
        if re.search(HIDDEN, line) or not line.replace("\t", "").isprintable()
    ]
    assert lines == []


def assert_sound_page(session, rows=1):
    """`summary.md` has whole tables, without foreign HTML and control characters; return it."""
    page = session.page
    # For each table the number of cells of its lines.
    tables = [
        [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()]
        for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    ]
    assert len(tables[0]) == rows + 2
    assert all(set(table) == {table[0]} for table in tables)
    assert "<" not in re.sub("</?code>", "", page)
    assert [line for line in page.split("\n") if not line.isprintable() or re.search(HIDDEN, line)] == []
    # No foreign text starts a heading, a fence or a list.
    start = r"# OpenClaw benchmark |## [A-Z]|\||- |\d+ cells? on |Successful cells\. |The wait for |$"
    assert [line for line in page.split("\n") if not re.match(start, line)] == []
    return page


NUMBER = {"type": "json_keys", "required_keys": ["<b>|x"], "key_rules": {"<b>|x": {"type": "number"}}}


def test_hostile_texts_everywhere_in_a_suite(project):
    """Prompt, name, category, tags, system prompt and violation may contain anything; only the row shows it raw."""
    cells = {
        f"{key}-{word}": (text, says, rule)
        for key, text in TEXTS.items()
        for word, says, rule in (
            ("any", text, NOOP),
            ("miss", text, {"type": "one_of", "values": ["yes"]}),
            ("value", json.dumps({"<b>|x": text}), NUMBER),
        )
    }
    project.suite(
        [
            {
                "id": name,
                "name": text,
                "category": text,
                "tags": [text, "common"],
                "system": text,
                "prompt": f"say {says}",
                "validator": rule,
                "note": {text: [text]},
            }
            for name, (text, says, rule) in cells.items()
        ]
    )

    session = project.run("-v", "-ra", "--junitxml=report.xml", "-k", "common")

    session.outcomes(passed=len(TEXTS), failed=2 * len(TEXTS))
    rows = {row["prompt_id"]: row for row in session.rows}
    prompts = {prompt["id"]: prompt for prompt in session.load("config.json")["prompts"]}
    for name, (text, says, _) in cells.items():
        row = rows[name]
        assert (row["prompt_name"], row["category"], row["raw_output"]) == (text, text, says)
        assert bool(row["violation"]) is not name.endswith("-any")
        assert prompts[name]["extra"]["note"] == {text: [text]}
    assert_harmless(session)
    assert "alert" in assert_sound_page(session)
    assert len(ET.parse(project.folder / "report.xml").findall(".//testcase")) == len(cells)


def test_odd_ids(plain_project):
    """An id that pytest accepts runs, and selects its cell, whatever it means in Markdown."""
    shown = {"<b>P|1": r"&lt;b&gt;P\|1", "`*_#P": r"\`\*\_\#P", "日本🎉": "日本🎉", "P" * 300: "P" * 40}
    plain_project.suite(dict.fromkeys(shown, ("say no", YES)))
    *targets, last = (f"benchmarks/prompts_a.json::{prompt_id}[scripted/m]" for prompt_id in shown)

    session = plain_project.run(*targets, target=last)

    session.outcomes(failed=len(shown))
    assert {row["prompt_id"] for row in session.rows} == set(shown)
    assert_harmless(session)
    page = assert_sound_page(session)
    assert [text for text in shown.values() if text not in page] == []


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode elsewhere")
def test_a_folder_whose_name_is_not_unicode(plain_project):
    """The rows of its suite, and of all others, are written."""
    plain_project.suite({"P1": ("say yes", YES)})
    shutil.copytree(plain_project.folder / "benchmarks", plain_project.folder / os.fsdecode(b"b\xff"))

    # pytest's own cache cannot store such a name.
    session = plain_project.run(os.fsdecode(b"b\xff/prompts_a.json"), "-p", "no:cacheprovider")

    session.outcomes(passed=2)
    assert len(session.rows) == 2


@pytest.mark.nightly
def test_ten_megabytes(project):
    """A prompt and a reply of 10 MB run, and fail; a row keeps 64 KiB and every output a few lines."""
    long = "é" * 5_000_000
    project.suite(
        [
            {"id": "P1", "prompt": f"say {long}", "validator": {"type": "exact", "value": long}},
            {"id": "P2", "prompt": f"say {long}x", "validator": {"type": "exact", "value": long}},
            {"id": "P3", "prompt": "say yes", "system": long, "tags": [long], "validator": NOOP},
        ]
    )

    session = project.run()

    session.outcomes(passed=1, failed=2)
    truncated = {row["prompt_id"]: row["truncated"] for row in session.rows}
    assert truncated == {"P1": True, "P2": True, "P3": False}
    assert all(len(row["raw_output"].encode()) <= 64 * 1024 for row in session.rows)
    assert session.row("P2")["violation"]
    assert len(session.text) < 20_000
    assert (session.run_dir / "results.jsonl").stat().st_size < 1_000_000
    assert (session.run_dir / "summary.md").stat().st_size < 20_000


ODD_MODELS = [
    "m[0]", "m]x[", "a::b", "a::b[c]::d", "|a|b|", "<b>x</b>", "`_#", "../../up", "/abs/olute", "a\\b", "日本🎉", "e\u0301",
    "M", "m", "x" * 600, "x" * 599 + "y", "$(id);&", "'q'\"r\"", "{0}%s", "-n", "@highest", "m-r1", "CON", "a@low@b",
]  # fmt: skip


def test_odd_model_names(project):
    """Every name without spaces and hidden characters is a model: in its row, its files, each report, its node id."""
    project.suite({"P1": ("say no", YES)})
    specs = [f"--openclaw-models=scripted/{model}" for model in ODD_MODELS]

    session = project.run(*specs, "-v", "--openclaw-run-id=all", models=None)

    session.outcomes(failed=len(ODD_MODELS))
    assert sorted(row["model"] for row in session.rows) == sorted(ODD_MODELS)
    assert [target["model"] for target in session.load("config.json")["targets"]] == ODD_MODELS
    groups = [(group["model"], group["n_total"]) for group in session.summary["groups"]]
    assert sorted(groups) == [(model, 1) for model in sorted(ODD_MODELS)]
    snapshots = [path.name for path in session.run_dir.iterdir() if path.name.startswith("resources_")]
    assert len({name.casefold() for name in snapshots}) == 2 * len(ODD_MODELS)
    name = re.compile(r"resources_[A-Za-z0-9_.-]{1,160}_(before|after)\.txt")
    assert all(map(name.fullmatch, snapshots))
    assert_harmless(session)
    assert_sound_page(session, rows=len(ODD_MODELS))

    chosen = ["m[0]", "m]x[", "a::b", "a::b[c]::d", "../../up", "日本🎉", "a\\b"]
    *nodes, last = (f"benchmarks/prompts_a.json::P1[scripted/{model}]" for model in chosen)
    again = project.run(*specs, *nodes, "--openclaw-run-id=chosen", models=None, target=last)
    assert sorted(row["model"] for row in again.rows) == sorted(chosen)


def test_faults_and_names_from_a_server(plain_project):
    """The model's name, the finish reason and a fault's message are foreign texts too."""
    hostile = "\x1b[31m<b>|x\u202e\n# y"
    plain_project.change_conftest(
        'finish_reason="stop"', f"finish_reason={hostile!r}, effective_model={hostile!r}"
    )
    plain_project.change_conftest('message="bad"', f"message={hostile!r}")
    plain_project.suite({"P1": ("say no", YES), "P2": ("broken", NOOP)})

    session = plain_project.run("-v", "-ra")

    session.outcomes(failed=1, errors=1)
    assert (session.row("P1")["effective_model"], session.row("P1")["finish_reason"]) == (hostile, hostile)
    assert_harmless(session)
    assert_sound_page(session)


BODIES = (
    "assert False, reply.text",
    "assert reply.text == 'yes'",
    "assert reply.text.splitlines() == ['yes'] * 5",
    "print(reply.text); assert False",
    "raise ValueError(reply.text)",
    "raise ValueError(reply.text + chr(0xD800))",
    "pytest.fail(reply.text)",
    "pytest.fail(reply.text, pytrace=False)",
    "pytest.skip(reply.text)",
)


def test_a_python_benchmark_that_quotes_the_answer(plain_project):
    """A test's message about a hostile reply reaches the row whole and the terminal harmless."""
    answer = TEXTS["ansi"] + TEXTS["bidi"]
    tests = [
        f"@pytest.mark.openclaw(id='R{n}', prompt={'say ' + answer!r})\ndef test_{n}(reply):\n    {body}\n"
        for n, body in enumerate(BODIES)
    ]
    plain_project.write("benchmarks/test_hostile.py", "import pytest\n" + "\n".join(tests))

    session = plain_project.run("-ra", "--tb=long")

    assert [row["raw_output"] for row in session.rows] == [answer] * len(BODIES)
    assert_harmless(session)


def test_half_a_character_in_a_traceback(project):
    """An exception with half a surrogate pair reaches xdist's controller, and the next cell is asked."""
    project.change_conftest('"the provider is broken"', '"broken: \\ud800 \\x1b[31m"')
    project.suite({"P1": ("crash", NOOP), "P2": ("say yes", NOOP)})

    session = project.run("--openclaw-concurrency=1")

    session.outcomes(errors=1, passed=1)
    assert session.row("P1")["failure_type"] == "harness_error"
    assert "RuntimeError: broken: " in session.text
    assert_harmless(session)


def test_a_terminal_that_shows_only_ascii(plain_project, monkeypatch):
    """Everything else is escaped there, and the files are UTF-8 anyway."""
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    prompt = {"id": "日本", "name": "é🎉", "prompt": "say 🎉", "validator": {"type": "exact", "value": "ü"}}
    plain_project.suite([prompt])

    session = plain_project.run("-v", models="scripted/日本", apart=True)

    session.outcomes(failed=1)
    assert session.text.isascii()
    (row,) = session.rows
    assert (row["prompt_id"], row["model"], row["raw_output"]) == ("日本", "日本", "🎉")
    assert "日本" in assert_sound_page(session)
