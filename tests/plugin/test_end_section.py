"""The header and the section at the end of a run: width, color, and when pytest leaves the section out."""

import re

import pytest

pytestmark = pytest.mark.newest

TITLE = "which model may hold the tools?"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
MODELS = "scripted/a-model-with-quite-a-long-name:8b-instruct@low,scripted/another-model-with-a-long-name:3b"


@pytest.fixture
def busy(plain_project):
    """A project with much to report: repeats, known failures, prices, a baseline, a fault."""
    plain_project.suite(
        "\n".join(
            f'[[prompts]]\nid = "P{n}"\nname = "a_prompt_with_a_long_name_{n}"\nprompt = "say {"yes" if n < 9 else "no"}"\n'
            f'validator = {{ type = "exact", value = "yes" }}\n'
            + ('xfail = [{ target = "*", reason = "hard" }]\n' if n in {1, 11} else "")
            for n in range(12)
        )
        + '\n[[prompts]]\nid = "F1"\nprompt = "timeout"\nvalidator = { type = "noop" }\n'
    )
    plain_project.ini("openclaw_prices = scripted/a-* = 3 15")
    plain_project.run("--openclaw-run-id=before", models=MODELS)
    path = plain_project.folder / "benchmarks/prompts_a.toml"
    path.write_text(re.sub(r'(_[0-7]"\nprompt = "say) yes', r"\1 no", path.read_text()))
    return plain_project


def _run(busy, *words):
    session = busy.run(
        "--openclaw-run-id=after", "--openclaw-repeat=2", "--openclaw-retries=0", "--openclaw-min-pass-rate=0.5",
        "--openclaw-max-p95-ms=60000", "--openclaw-baseline=before", "--openclaw-across=prompt",
        "--openclaw-fail-on=regression", *words, models=MODELS,
    )  # fmt: skip
    return session.text


@pytest.mark.parametrize(
    ("words", "environ", "is_colored"),
    [
        pytest.param(["--color=yes"], {}, True, id="yes"),
        pytest.param(["--color=no"], {"FORCE_COLOR": "1"}, False, id="no"),
        pytest.param([], {}, False, id="auto-without-a-terminal"),
        pytest.param([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="no-color"),
    ],
)
def test_it_uses_pytests_colors(busy, monkeypatch, words, environ, is_colored):
    """Failed gates and worse targets are colored when pytest uses color, and the text is the same."""
    for name in ("FORCE_COLOR", "PY_COLORS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    text = _run(busy, *words)

    assert ("\x1b[31mgate FAILED\x1b[0m" in text) == is_colored
    assert ("\x1b[31mworse\x1b[0m" in text) == is_colored
    assert ("\x1b" in text) == is_colored
    assert "gate FAILED       min-pass-rate 0.5," in ESCAPE.sub("", text)


def test_no_summary_is_respected(busy, monkeypatch):
    """The section is left out, and the header, the files and GitHub's annotations are written anyway."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    text = _run(busy, "--no-summary")

    (header,) = (line for line in text.splitlines() if line.startswith("openclaw: scripted/"))
    assert header == "openclaw: scripted/a-model-with-quite-a-…ipted/another-model-with-a-long-name:3b"
    assert TITLE not in text
    assert "gate FAILED" not in text
    assert (busy.folder / "runs/after/summary.md").is_file()
    if tuple(int(part) for part in pytest.__version__.split(".")[:1]) >= (9,):
        assert "::error title=min-pass-rate" in text
