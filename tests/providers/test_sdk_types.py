"""The makers' own types: what we send fits them, and so do the answers that the tests of a provider send."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.providers.anthropic_messages import messages_body
from pytest_openclaw.providers.gemini import gemini_body
from pytest_openclaw.providers.wire import error_of_object
from pytest_openclaw.values.faults import refused_by_server
from pytest_openclaw.values.replies import Image, Turn, meaning_of
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool
from tests.images import png
from tests.providers import test_gemini as gemini
from tests.providers.test_anthropic_messages import CARRIED, LISTS, READ, READS

pytestmark = pytest.mark.newest
pydantic = pytest.importorskip("pydantic")
# Loaded before any test: pytester forgets what a session inside a test has imported, and a second pydantic does not
# know the classes of the first.
for part in ("fields", "main", "type_adapter"):
    pytest.importorskip(f"pydantic.{part}")

CHART = Image(path="chart.png", media_type="image/png", data=png())
HISTORY = (
    Turn(text="Let me look.", calls=(READS, LISTS), results=("alpha", ""), carried=CARRIED),
    Turn(text="Once more.", calls=(READS,), results=("beta",)),
    Turn(text="It says beta."),
    Turn(user="Go on."),
)
REQUESTS = {
    "least": Request(model="m", prompt="Hi"),
    "whole": Request(model="m", prompt="Hi", stream=False),
    "system": Request(model="m", prompt="Hi", system="Be brief."),
    "thinking": Request(model="m", prompt="Hi", thinking_level="low", max_output_tokens=2048),
    "tools": Request(model="m", prompt="Hi", tools=(READ, Tool(name="session_status"))),
    "images": Request(model="m", prompt="Hi", images=(CHART,)),
    "conversation": Request(model="m", prompt="Hi", tools=(READ,), history=HISTORY),
    "messages": Request(model="m", prompt="Hi", tools=(READ,), messages=(Turn(user="Before."), *HISTORY[1:])),
}


def read_lazily(value: Any) -> Any:
    """A validated value with what is validated when it is read."""
    if isinstance(value, dict):
        return {name: read_lazily(part) for name, part in value.items()}
    if isinstance(value, (str, int, float, type(None))):
        return value
    return [read_lazily(part) for part in value]


# --- anthropic ----------------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [(), ("level",)], ids=["level", "budget"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_bodies_of_messages(request_: Request, refused: tuple[str, ...]) -> None:
    """Every field that is sent is one of the API's, except for the temperature that older models take."""
    params = pytest.importorskip("anthropic.types.message_create_params")
    kind = params.MessageCreateParamsStreaming if request_.stream else params.MessageCreateParamsNonStreaming
    body = messages_body(request_, refused)

    adapter = pydantic.TypeAdapter(kind)  # kept until all is read
    fits = read_lazily(adapter.validate_python(body))

    assert fits == {name: value for name, value in body.items() if name != "temperature"}


@pytest.mark.parametrize(
    ("kind", "status"),
    [("overloaded_error", 529), ("rate_limit_error", 429), ("authentication_error", 401), ("api_error", 500)],
)
def test_errors_of_messages(kind: str, status: int) -> None:
    """The names of errors are the API's."""
    shared = pytest.importorskip("anthropic.types.shared")
    payload = {"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "r"}

    error = pydantic.TypeAdapter(shared.ErrorResponse).validate_python(payload)

    assert refused_by_server("p", "m", error_of_object(error.model_dump())).failure_type == f"http_{status}"


# --- gemini -------------------------------------------------------------------------------------

PLAIN = Turn(text="Let me look.", calls=(gemini.READS,), results=("alpha",))
SIGNED = Turn(calls=(gemini.READS, gemini.LISTS), results=("alpha", ""), carried=gemini.PARTS)


@pytest.mark.parametrize("refused", [(), ("level",)], ids=["level", "budget"])
@pytest.mark.parametrize(
    "request_",
    [
        Request(model="m", prompt="Hi", system="Be brief.", seed=3),
        Request(model="m", prompt="Hi", thinking_level="xhigh"),
        Request(model="m", prompt="Hi", images=(CHART,)),
        Request(model="m", prompt="Hi", tools=(READ,), history=(PLAIN, SIGNED, Turn(user="Go on."))),
        Request(model="m", prompt="Hi", tools=(READ,), messages=(Turn(user="Before."), PLAIN)),
    ],
    ids=["system", "thinking", "images", "conversation", "messages"],
)
def test_bodies_of_gemini(request_: Request, refused: tuple[str, ...]) -> None:
    """Every field that is sent is one of the API's; the client's types allow no others."""
    types = pytest.importorskip("google.genai.types")
    kinds = {
        "contents": list[types.Content],
        "generationConfig": types.GenerationConfig,
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
    }
    body = gemini_body(request_, refused)

    for name, value in body.items():
        adapter = pydantic.TypeAdapter(kinds[name])
        fits = adapter.validate_python(value)
        again = adapter.dump_python(fits, mode="json", by_alias=True, exclude_none=True)
        assert again == value


def test_finish_reasons_of_gemini() -> None:
    """Each reason of the API has a meaning, except those of pictures and of tools that the server runs."""
    types = pytest.importorskip("google.genai.types")

    unknown = {one.value for one in types.FinishReason if meaning_of(one.value) is None}
    assert unknown == {"FINISH_REASON_UNSPECIFIED", "NO_IMAGE", "IMAGE_OTHER", "TOO_MANY_TOOL_CALLS"}


# --- what OpenClaw offers -----------------------------------------------------------------------

CATALOGUE = load_catalogue()


@pytest.mark.parametrize("surface", sorted(CATALOGUE.surfaces))
def test_surfaces_of_openclaw(surface: str) -> None:
    """Each surface's tools have names and schemas that both APIs take."""
    messages = pytest.importorskip("anthropic.types")
    google = pytest.importorskip("google.genai.types")
    offered = Request(model="m", prompt="Hi", tools=CATALOGUE.surface(surface))

    tools = messages_body(offered)["tools"]
    declared = gemini_body(offered)["tools"]

    assert [pydantic.TypeAdapter(messages.ToolParam).validate_python(tool) for tool in tools] == tools
    assert all(tool["input_schema"]["type"] == "object" for tool in tools)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", tool["name"]) for tool in tools)
    adapter = pydantic.TypeAdapter(list[google.Tool])
    again = adapter.dump_python(
        adapter.validate_python(declared), mode="json", by_alias=True, exclude_none=True
    )
    assert again == declared
