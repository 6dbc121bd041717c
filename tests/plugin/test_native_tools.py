"""Native tools and prompts that a server truncates, in whole sessions."""

import pytest

pytestmark = pytest.mark.newest

OFFERS = """
[[prompts]]
id = "T1"
prompt = "offered"
tools = ["read", "exec"]
validator = { type = "exact", value = "read exec" }

[[prompts]]
id = "P1"
prompt = "say hi"
validator = { type = "exact", value = "hi" }
"""
OLD = '''

class Old(Scripted):
    """A provider written before tools could be offered."""

    name = "old"
    takes_tools = False


PROVIDERS.append(Old)
'''


@pytest.mark.under_workers
def test_a_prompts_tools_reach_the_provider(project):
    """A provider gets the tools that the suite offers; one without tools skips these cells with a hint."""
    project.extend_conftest(OLD)
    project.suite(OFFERS)

    session = project.run(models="scripted/m,old/m")

    session.outcomes(passed=3, skipped=1)
    rows = {(row["provider"], row["prompt_id"]): row for row in session.rows}
    assert (rows["scripted", "T1"]["tools_offered"], rows["scripted", "P1"]["tools_offered"]) == (2, None)
    row = rows["old", "T1"]
    assert (row["availability_status"], row["failure_type"]) == ("skipped_unavailable", "not_installed")
    assert (row["attempts"], row["e2e_ms"]) == (0, 0)
    message = "old: not asked: the prompt has tools, which this provider does not"
    assert row["fault_message"].startswith(message)
    assert "takes_tools = True" in session.text
    assert [group["n_skipped_unavailable"] for group in session.summary["groups"]] == [0, 1]
    assert session.status == 0
