"""The parts of a run for CI systems: JUnit's properties, GitHub's step summary and annotations."""

from xml.etree import ElementTree

from tests.plugin.conftest import YES

SUITE = """
[[prompts]]
id = "P1"
prompt = "say yes"
validator = { type = "exact", value = "yes" }

[[prompts]]
id = "P2"
name = "second, and: last"
prompt = "say no"
validator = { type = "exact", value = "yes" }
"""


def test_junit_and_github_get_the_run(project, monkeypatch, tmp_path):
    """A case has its row's figures; the page goes to the step summary, and annotations name what failed."""
    page = tmp_path / "step.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.folder))
    project.suite(SUITE)

    session = project.run("--junitxml=out/j.xml", "--openclaw-min-pass-rate=0.9")

    (suite,) = ElementTree.parse(project.folder / "out" / "j.xml").getroot()
    cases = {
        case.attrib["name"]: {
            one.attrib["name"]: one.attrib["value"] for one in case.iterfind("properties/property")
        }
        for case in suite.iterfind("testcase")
    }
    row = session.row("P2")
    assert set(cases) == {"P1[scripted/m]", "P2[scripted/m]"}
    second = cases["P2[scripted/m]"]
    assert second["openclaw.objective_pass"] == "false"
    assert second["openclaw.e2e_ms"] == str(row["e2e_ms"])
    assert second["openclaw.violation"] == row["violation"]
    assert "openclaw.failure_type" not in second
    lines = [line for line in session.text.splitlines() if line.startswith("::")]
    assert lines == [
        "::error title=min-pass-rate%2C scripted/m%3A failed"
        "::1 of 2 judged cells passed (50.0 %25), 90.0 %25 wanted",
        '::warning title=P2 second%2C and%3A last%3A missed by all::"no" is not "yes"',
    ]
    assert page.read_text() == f"before\n{session.page}\n"


def test_many_missed_prompts_are_counted(plain_project, monkeypatch):
    """GitHub shows ten of a kind, so the tenth says how many more there are."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    plain_project.suite({f"P{n}": ("say no", YES) for n in range(14)})

    lines = [line for line in plain_project.run().text.splitlines() if line.startswith("::")]

    assert len(lines) == 10
    assert "title=5 more prompts missed::" in lines[-1]


def test_a_summary_that_cannot_be_written_loses_no_run(plain_project, monkeypatch, tmp_path):
    """The run is written anyway, and a warning says what is missing."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "step.md"))
    plain_project.suite(SUITE)

    session = plain_project.run("-W", "default")

    assert session.status == 1
    assert len(session.rows) == 2
    assert "the step summary cannot be written" in session.text
