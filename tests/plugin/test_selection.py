"""Selecting cells the pytest way: `-k`, node ids, `-m`, `-x`, `--lf`, order."""

import pytest

from tests.plugin.conftest import NOOP

TOML = """
[[prompts]]
id = "P1"
name = "router_json"
category = "json"
tags = ["fast"]
prompt = "say one"

[[prompts]]
id = "P10"
name = "long"
category = "prose"
prompt = "say ten"

[[prompts]]
id = "P3"
name = "third"
prompt = "say three"
"""


@pytest.mark.parametrize(
    ("keyword", "ids"),
    [
        pytest.param("P1", ["P1"], id="id"),
        pytest.param("router", ["P1"], id="part-of-a-name"),
        pytest.param("json", ["P1"], id="category"),
        pytest.param("fast", ["P1"], id="tag"),
        pytest.param("scripted", ["P1", "P10", "P3"], id="target"),
        pytest.param("(P10 or P3) and not third", ["P10"], id="expression"),
    ],
)
def test_k_selects_prompts(project, keyword, ids):
    """An id in `-k` means only its prompt; everything else is pytest's substring."""
    project.suite(TOML)

    session = project.run("-k", keyword)

    assert sorted(row["prompt_id"] for row in session.rows) == sorted(ids)


@pytest.mark.parametrize(
    ("target", "ids"),
    [
        pytest.param("benchmarks", ["P1", "P10", "P3"], id="folder"),
        pytest.param("benchmarks/prompts_a.toml::P10", ["P10"], id="prompt"),
        pytest.param("benchmarks/prompts_long.toml", ["X1", "X10", "X3"], id="file"),
        pytest.param("benchmarks/prompts_long.toml::X3[scripted/m]", ["X3"], id="cell"),
        pytest.param("prompts_elsewhere.toml", ["Y1", "Y10", "Y3"], id="file-of-another-folder"),
    ],
)
def test_named_suites_and_cells_run(project, target, ids):
    """With `named_only` a run of the folder omits the suite; naming its file or cells includes it."""
    project.suite(TOML)
    project.suite(f"named_only = true\n{TOML.replace('P', 'X')}", "prompts_long.toml")
    project.write("prompts_elsewhere.toml", TOML.replace("P", "Y"))

    session = project.run(target=target)

    assert sorted(row["prompt_id"] for row in session.rows) == ids
    assert {row["suite"] for row in session.rows} <= {target.partition("::")[0], "benchmarks/prompts_a.toml"}


def test_m_selects_cells(plain_project):
    """`-m openclaw` means the cells, under strict markers too."""
    plain_project.suite(TOML)
    plain_project.write("benchmarks/test_plain.py", "def test_plain(): pass\n")

    session = plain_project.run("-m", "openclaw", "--strict-markers")

    session.outcomes(passed=3, deselected=1)


@pytest.mark.under_workers
def test_x_stops_the_asking(project):
    """After `-x` no further cell is asked; the summary covers the rows so far and is marked incomplete."""
    project.suite({"P1": ("broken", NOOP), **{f"Q{n}": ("say yes", NOOP) for n in range(40)}})

    session = project.run("-x", "--openclaw-concurrency=1")

    assert len(session.asked) < 41
    assert session.summary["state"] == "interrupted"
    assert session.summary["n_cells"] == 41
    assert session.status in {1, 2}
