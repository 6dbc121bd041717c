"""What has changed between the tools of two catalogues."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.stats.drift import ComparedSurface, compare_surfaces, compare_tools, nearest
from pytest_openclaw.stats.parameters import parameters_of
from pytest_openclaw.tools.catalogue import load_catalogue
from pytest_openclaw.types.tool_calls import Tool


def _tool(properties: dict[str, Any], name: str = "t", words: str = "", **more: Any) -> Tool:
    return Tool(name=name, description=words, parameters={"type": "object", "properties": properties, **more})


STRING: dict[str, Any] = {"type": "string"}
NESTED = {"edits": {"type": "array", "items": {"type": "object", "properties": {"old": STRING}}}}


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        pytest.param(_tool({"a": STRING}), _tool({"a": STRING, "b": STRING}), {"added": ("b",)}, id="added"),
        pytest.param(_tool({"a": STRING}), _tool({}), {"removed": ("a",)}, id="removed"),
        pytest.param(
            _tool({"a": STRING}),
            _tool({"a": {"type": "integer", "minimum": 1}}),
            {"retyped": {"a": ("string", "integer (minimum=1)")}},
            id="retyped",
        ),
        pytest.param(
            _tool({"a": {"enum": ["x", "y"], "type": "string"}}),
            _tool({"a": {"enum": ["x"], "type": "string"}}),
            {"retyped": {"a": ("string x|y", "string x")}},
            id="a-value-less",
        ),
        pytest.param(
            _tool({"a": {"type": ["string", "null"]}}),
            _tool({"a": STRING}),
            {"retyped": {"a": ("string/null", "string")}},
            id="no-null-any-more",
        ),
        pytest.param(
            _tool({"a": STRING}), _tool({"a": STRING}, required=["a"]), {"required": ("a",)}, id="required"
        ),
        pytest.param(
            _tool({"a": STRING}, required=["a"]), _tool({"a": STRING}), {"optional": ("a",)}, id="optional"
        ),
        pytest.param(
            _tool(NESTED),
            _tool({"edits": {"type": "array", "items": {"type": "object", "properties": {"new": STRING}}}}),
            {"added": ("edits[].new",), "removed": ("edits[].old",)},
            id="within-a-list",
        ),
        pytest.param(
            _tool({"a": {"anyOf": [STRING, {"type": "null"}]}}),
            _tool({"a": {"anyOf": [STRING, {"type": "integer"}]}}),
            {"retyped": {"a<2>": ("null", "integer")}},
            id="within-alternatives",
        ),
        pytest.param(
            _tool({}),
            _tool({}, additionalProperties=False),
            {"retyped": {"": ("object", "object (no others)")}},
            id="no-others",
        ),
        pytest.param(_tool({}), _tool({}, words="New."), {"reworded": True}, id="other-words"),
        pytest.param(
            _tool({"a": STRING}),
            _tool({"a": {**STRING, "description": "New."}}),
            {"reworded": True},
            id="other-words-of-a-parameter",
        ),
    ],
)
def test_a_change_is_found(before: Tool, now: Tool, found: dict[str, Any]) -> None:
    """Each kind of change is in its own field, and no other field changes."""
    change = compare_tools(before, now, with_words=True)

    assert change is not None
    fields = ("added", "removed", "retyped", "required", "optional", "reworded")
    assert {name: getattr(change, name) for name in fields if getattr(change, name)} == found


def test_without_the_releases_words_only_what_calls_take_counts() -> None:
    """The catalogue that ships has descriptions of its own."""
    before, now = _tool({"a": STRING}), _tool({"a": {**STRING, "description": "New."}}, words="New.")

    assert compare_tools(before, now, with_words=False) is None
    assert compare_tools(now, now, with_words=True) is None


def test_a_surface_is_compared() -> None:
    """Tools, their order, the request's fields and its size; the order is that of the tools in both."""
    one, two, three = (_tool({}, name) for name in ("one", "two", "three"))
    before = ComparedSurface(tools=[one, two, three], fields={"stream": True, "n": 1}, n_bytes=10)
    now = ComparedSurface(
        tools=[three, _tool({}, "new"), one], fields={"stream": True, "n": 2, "x": []}, n_bytes=12
    )

    drift = compare_surfaces(before, now, surface="s", beside="s")

    assert (drift.added, drift.removed, drift.changed) == (("new",), ("two",), ())
    assert (drift.reordered, drift.n_bytes, drift.is_any) == (True, (10, 12), True)
    assert drift.fields == {"n": ("1", "2"), "x": (None, "[]")}


def test_nothing_has_changed_in_what_is_the_same() -> None:
    """Fields that one side does not know are no change; neither is the size alone."""
    before = ComparedSurface(tools=[_tool({})], fields=None, n_bytes=9)
    now = ComparedSurface(tools=[_tool({})], fields={"stream": True}, n_bytes=12)

    assert not compare_surfaces(before, now, surface="s", beside="s").is_any


def test_sections_of_the_system_prompt_are_compared() -> None:
    """They are compared by heading, separately: other contents of a machine are no drift of the tools."""
    before, now = (
        ComparedSurface(tools=[], system=text)
        for text in ("Hi.\n## One\nA\n## Two\nB\n### Sub\nC", "Hi.\n## One\nA!\n### Sub\nC\n## New\n")
    )

    drift = compare_surfaces(before, now, surface="s", beside="s")

    assert drift.sections == ("One", "Two", "New")
    assert (drift.n_prompt_bytes, drift.is_any) == ((31, 31), False)


@pytest.mark.parametrize(
    ("names", "surface"),
    [
        pytest.param(("gateway",), "minimal", id="minimal"),
        pytest.param(("read", "write", "exec", "edit", "ls"), "direct", id="direct"),
        pytest.param(tuple(load_catalogue().surfaces["coding"])[2:], "coding", id="coding-without-two"),
    ],
)
def test_the_surface_most_like_it(names: tuple[str, ...], surface: str) -> None:
    """A machine's own surface is compared with the one that has the same tools and the fewest others."""
    assert nearest([Tool(name=name) for name in names], load_catalogue().surfaces) == surface


@pytest.mark.parametrize("tool", load_catalogue().tools.values(), ids=lambda tool: tool.name)
def test_every_parameter_of_the_release_has_a_path_of_its_own(tool: Tool) -> None:
    """Therefore a change has an exact location."""
    paths = [part.path for part in parameters_of(tool)]

    assert len(paths) == len(set(paths))
    assert paths[0] == ""
    assert set(tool.parameters["properties"]) <= set(paths)
