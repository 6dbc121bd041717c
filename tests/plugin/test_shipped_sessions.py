"""The shipped suites as a user runs them, plain and under workers."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.newest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# Sends one answer to everything, and takes all that a prompt may need.
ALWAYS = """
class Always(Provider):
    name = "always"
    takes_tools = takes_messages = True
    takes = frozenset({"images"})

    async def ask(self, request):
        return Reply(text="Done.", finish_reason="stop")


PROVIDERS.append(Always)
"""


@pytest.mark.under_workers
def test_every_suite_is_sent_whole(project: Any) -> None:
    """Whatever its validators and worlds are made of, each cell crosses the workers' channel and has a row."""
    shutil.copytree(BENCHMARKS, project.folder / "benchmarks")
    project.extend_conftest(ALWAYS)
    suites = sorted(path.name for path in BENCHMARKS.glob("prompts_*.toml"))

    session = project.run(*(f"benchmarks/{name}" for name in suites), models="always/m", target="")

    rows = session.rows
    assert session.status == 1
    assert Counter(row["availability_status"] for row in rows) == {"ok": len(rows)}
    assert {row["suite"] for row in rows} == {f"benchmarks/{name}" for name in suites}
    assert len(rows) == sum(session.result.parseoutcomes().get(word, 0) for word in ("passed", "failed"))
