"""Projects created by `init`: their first run, and the steps of their workflow."""

import pytest

from pytest_openclaw.cli import main

HEAD = "        word, _, rest = request.prompt.partition"
ANSWER = "        return Reply(text='Paris, and `df -h`')\n"


@pytest.fixture
def created(plain_project):
    plain_project.change_conftest(HEAD, ANSWER + HEAD)
    assert main(["init", "--models", "scripted/m"]) == 0
    return plain_project


def test_the_first_run_works(created):
    """`pytest benchmarks/` asks the prompts, the tool prompts twice, without a model option."""
    session = created.run(models=None, target="benchmarks/")

    session.outcomes(passed=4, failed=2, deselected=16)
    assert sorted(row["prompt_id"] for row in session.rows) == ["M1", "M2", "M3", "M3", "M4", "M4"]
    assert {row["availability_status"] for row in session.rows} == {"ok"}
    for words in (["show", "last", "M4-r1"], ["history"], ["export", "last"]):
        assert main(words) == 0


def test_a_bare_session_stays_with_the_tests(created):
    """If the project has tests, only they are run, and no model is called."""
    created.write("tests/test_mine.py", "def test_mine(): pass\n")
    (created.folder / "pytest.ini").unlink()
    assert main(["init", "--models", "scripted/m"]) == 0

    session = created.run(models=None, target="")

    session.outcomes(passed=1)
    assert not session.has_run
