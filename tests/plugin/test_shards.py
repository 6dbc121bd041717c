"""`--openclaw-shard`: jobs divide the cells of a run, and `merge` joins them."""

import pytest

from pytest_openclaw.__main__ import main
from tests.plugin.conftest import YES

SUITE = {f"P{n}": ("say yes", YES) for n in range(10)}
MODELS = "scripted/a,scripted/b"


def _run_shard(project, shard, *args):
    return project.run(
        f"--openclaw-shard={shard}", f"--openclaw-run-id=s{shard.replace('/', '-')}", *args, models=MODELS
    )


def _cells(session):
    return {(row["suite"], row["prompt_id"], row["model"]) for row in session.rows}


def test_shards_divide_the_cells_evenly(project):
    """Each cell is in exactly one shard; sizes differ by one at most; the header names the shard."""
    project.suite(SUITE)

    sessions = [_run_shard(project, f"{number}/3") for number in (1, 2, 3)]

    cells = [_cells(session) for session in sessions]
    assert [len(own) for own in cells] == [7, 7, 6]
    assert len(set.union(*cells)) == 20
    assert "; shard 2/3" in sessions[1].text


def test_a_shard_does_not_depend_on_the_order_of_collection(plain_project):
    """The same cells are in a shard if files and models are named in another order."""
    plain_project.suite(SUITE)
    plain_project.suite(SUITE, name="prompts_b.toml")
    files = [f"benchmarks/prompts_{name}.json" for name in "ab"]
    shard = "--openclaw-shard=1/3"

    one = plain_project.run(shard, "--openclaw-run-id=one", *files, target="", models=MODELS)
    two = plain_project.run(
        shard, "--openclaw-run-id=two", *reversed(files), target="", models="scripted/b,scripted/a"
    )

    assert len(_cells(one)) == 14
    assert _cells(one) == _cells(two)


def test_a_shard_that_is_resumed_stays_the_same(plain_project):
    """A resumed shard needs no option; another number is refused, and nothing is sent."""
    plain_project.suite(SUITE)
    before = _cells(_run_shard(plain_project, "2/3"))

    resumed = plain_project.run("--openclaw-resume=s2-3", models=None)
    other = plain_project.run("--openclaw-resume=s2-3", "--openclaw-shard=1/3", models=None)

    resumed.outcomes(passed=7, deselected=13)
    assert _cells(resumed) == before
    other.is_refused("shard was 2/3, and is 1/3")


def test_merge_refuses_missing_shards(plain_project, capsys):
    """Missing shards are named; a shard of another selection does not complete a division."""
    plain_project.suite(SUITE)
    _run_shard(plain_project, "1/4")
    _run_shard(plain_project, "3/4")
    _run_shard(plain_project, "2/4", "-k", "not P3")

    assert main(["merge", "s1-4", "s2-4", "s3-4", "--into", "whole"]) == pytest.ExitCode.USAGE_ERROR

    refused = capsys.readouterr().err
    assert "shards are missing: 2/4, 4/4; there are 1/4, 3/4" in refused
    assert "only if they divide the same selection" in refused
