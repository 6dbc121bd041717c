"""The catalogue has the tools of OpenClaw 2026.9.6; the expected facts were observed in its requests."""

import json
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from pytest_openclaw.openclaw.catalog import LATEST, load_catalogue
from pytest_openclaw.util.bounded import BoundedSchema

pytestmark = pytest.mark.newest

CATALOGUE = load_catalogue()
FILE = resources.files("pytest_openclaw.openclaw").joinpath("catalogues", f"{LATEST}.json")
BRIDGE = ("tool_call", "tool_describe", "tool_search")
SURFACES = {name: CATALOGUE.surface(name) for name in CATALOGUE.surfaces}
SURFACES["deferred"] = CATALOGUE.deferred_tools()
EVERY = [pytest.param(tool, id=f"{name}-{tool.name}") for name in SURFACES for tool in SURFACES[name]]


def _parts(schema):
    yield schema
    for key in ("properties", "patternProperties"):
        for part in schema.get(key, {}).values():
            yield from _parts(part)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _parts(schema[key])
    for part in schema.get("anyOf", []):
        yield from _parts(part)


def _size(tools):
    functions = (
        {name: getattr(tool, name) for name in ("name", "description", "parameters")} for tool in tools
    )
    sent = [{"type": "function", "function": function} for function in functions]
    return len(json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("surface", "count"), [("direct", 11), ("tool-search", 11), ("coding", 39), ("full", 54)]
)
def test_a_surface_sends_as_many_tools_as_the_release(surface, count):
    """Every surface has the release's number of tools, each once, in the order of the wire."""
    names = [tool.name for tool in CATALOGUE.surface(surface)]

    assert len(names) == len(set(names)) == count
    assert names == sorted(names)


def test_the_bridge_reaches_the_rest_of_the_coding_profile():
    """The tools sent directly and the deferred ones together are the tools of the profile `coding`."""
    sent = set(CATALOGUE.surfaces["tool-search"]) - set(BRIDGE)

    assert CATALOGUE.surfaces["tool-search"] == CATALOGUE.surfaces["direct"]
    assert len(CATALOGUE.deferred) == 31
    assert sent.isdisjoint(CATALOGUE.deferred)
    assert sent | set(CATALOGUE.deferred) == set(CATALOGUE.surfaces["coding"])


@pytest.mark.parametrize("tool", EVERY)
def test_every_schema_is_one_of_an_object(tool):
    """Parameters are a valid Draft 2020-12 schema of an object whose required keys exist."""
    Draft202012Validator.check_schema(tool.parameters)
    BoundedSchema(tool.parameters)

    assert tool.parameters["type"] == "object"
    for part in _parts(tool.parameters):
        assert set(part.get("required", ())) <= set(part.get("properties", {}))
        assert part.keys() <= {
            "type", "properties", "required", "additionalProperties", "patternProperties", "items", "anyOf",
            "enum", "const", "default", "description", "pattern", "minLength", "maxLength", "minItems",
            "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum",
        }  # fmt: skip


@pytest.mark.parametrize(("surface", "parameters"), [("full", 6), ("coding", 2), ("deferred", 2)])
def test_a_tool_may_take_less_on_a_smaller_surface(surface, parameters):
    """`gateway` is sent with fewer parameters where the release does so."""
    sent = next(tool for tool in SURFACES[surface] if tool.name == "gateway")

    assert len(sent.parameters["properties"]) == parameters


def test_the_file_says_how_much_it_weighs():
    """`about` has the bytes of each surface in a request, and the file stays small."""
    data = json.loads(FILE.read_text("utf-8"))
    said = {surface: entry["bytes"] for surface, entry in data["about"]["sizes"].items()}

    assert data["release"] == LATEST
    assert said == {surface: _size(CATALOGUE.surface(surface)) for surface in CATALOGUE.surfaces}
    assert len(FILE.read_bytes()) < 110_000
    for entry in data["about"]["sizes"].values():
        assert 0.6 < entry["bytes"] / entry["bytes_of_the_release"] < 1.1
