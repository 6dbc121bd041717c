"""Native tools and prompts that a server truncates, in whole sessions."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.bad_servers import point_at
from tests.providers.servers.apis import APIS, tools_in
from tests.providers.servers.counting import cuts_at
from tests.providers.servers.misbehaving import MisbehavingServer, Script

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
READS = """
[[prompts]]
id = "T1"
prompt = "Read notes.md."
tools = "direct"
validator = { type = "tool_invocation", expected_tools = ["read"] }
"""
ARGUMENTS = '{"path": "notes.md"}'
OLD = '''

class Old(Scripted):
    """A provider written before tools could be offered."""

    name = "old"
    takes_tools = False


PROVIDERS.append(Old)
'''


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MisbehavingServer]:
    """A server that all providers use."""
    with MisbehavingServer() as running:
        point_at(monkeypatch, running)
        yield running


@pytest.mark.under_workers
def test_a_prompts_tools_reach_the_provider(project: Any) -> None:
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


def test_an_offer_on_the_wire(plain_project: Any, server: MisbehavingServer) -> None:
    """A surface is sent whole by each API, and the model's calls are in its row."""
    plain_project.suite(READS)
    for api in APIS:
        server.on(
            api.path_of("m"), Script.answer(api.whole(None, "tool_calls", calls=(("read", ARGUMENTS),)))
        )

    session = plain_project.run(models=",".join(f"{api.kind.name}/m" for api in APIS))

    session.outcomes(passed=len(APIS))
    asked = [tools_in(request.json) for request in server.requests if b'"tools"' in request.body]
    assert [(len(names), "read" in names) for names in asked] == [(11, True)] * len(APIS)
    for row in session.rows:
        assert (row["tools_offered"], row["tool_calls"]) == (11, ["read"])
        (details,) = row["tool_call_details"]
        assert json.loads(details["arguments"]) == json.loads(ARGUMENTS)


def test_a_prompt_that_the_server_cuts_is_a_fault(plain_project: Any, server: MisbehavingServer) -> None:
    """Even if the reply to the truncated prompt looks right, the cell is a fault and no rate counts it."""
    ends = {"type": "contains", "value": "end"}
    plain_project.suite({"P1": ("word " * 600 + "end", ends), "P2": ("word " * 20 + "end", ends)})
    server.on("*", cuts_at(512))

    session = plain_project.run(models="ollama_openai/m")

    session.outcomes(passed=1, errors=1)
    cut, read = session.row("P1"), session.row("P2")
    assert (cut["availability_status"], cut["failure_type"]) == ("error", "context_overflow")
    assert (cut["objective_pass"], cut["attempts"], cut["raw_output"]) == (None, 1, "The last word is end")
    assert cut["fault_message"] == (
        "ollama_openai: the prompt was cut to fit m's context: 601 words were sent, and the server counted "
        "512 prompt tokens. Raise the server's context (num_ctx, in Ollama)."
    )
    assert cut["fault_message"] in session.text
    assert (read["objective_pass"], read["input_tokens"]) == (True, 28)
    (group,) = session.summary["groups"]
    assert (group["n_error"], group["n_success"], group["objective_pass_rate"]) == (1, 1, 1.0)
    assert session.status == 1
