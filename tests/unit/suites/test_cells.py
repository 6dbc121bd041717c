"""Prompts × targets, the prompts that are chosen, the order of cells, and their form in `config.json`."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.combine import Not, ToolInvocation
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.suites.cells import build_cells, definition, select_prompts, spread, unmatched
from pytest_openclaw.values.parts import pace_of, whole
from pytest_openclaw.values.prompts import KEYS, Prompt, prompt_keys
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.settings import Settings
from pytest_openclaw.values.tool_calls import Tool


def prompts(*ids, suite="benchmarks/prompts_x.toml"):
    return [Prompt(suite=suite, id=one, name=one, prompt="Hi", validator=None) for one in ids]


def targets(*models):
    return [Target(provider="ollama_openai", model=model) for model in models]


TOOL = Tool(name="read", description="Reads.", parameters={})
REPEATS_OF = pace_of(whole(Settings)(until_conclusive=True, repeat=3)).repeats_of


@pytest.mark.parametrize(
    ("changes", "n"),
    [
        pytest.param({}, 1, id="text"),
        pytest.param({"expected_tool_calls": ()}, 3, id="any-tool"),
        pytest.param({"validator": ToolInvocation(expected_tools=("df",))}, 3, id="tool-in-text"),
        pytest.param({"tools": (TOOL,)}, 3, id="native"),
        pytest.param({"tools": (TOOL,), "probe": "secret"}, 1, id="probe"),
        pytest.param({"tools": (TOOL,), "pressure_of": "P0"}, 1, id="pressure"),
        pytest.param({"validator": Not(validator=ToolInvocation(expected_tools=()))}, 1, id="restraint-in-text" ),
    ],
)  # fmt: skip
def test_a_prompt_that_affects_no_tier_may_come_once(changes, n):
    """With `until_conclusive` only the prompts that count for the tier are repeated."""
    (prompt,) = prompts("P1")
    prompt = replace(prompt, **{"validator": Noop(), **changes})

    assert len(build_cells([prompt], targets("a"), 3, repeats_of=REPEATS_OF)) == n


@pytest.mark.parametrize(
    ("own", "repeats", "repeats_of", "ids"),
    [
        pytest.param(3, 1, None, ["-r1", "-r2", "-r3"], id="more-than-the-others"),
        pytest.param(1, 3, None, [""], id="fewer-than-the-others"),
        pytest.param(2, 10, REPEATS_OF, ["-r1", "-r2"], id="though-it-affects-no-tier"),
        pytest.param(None, 2, None, ["-r1", "-r2"], id="nothing-of-its-own"),
    ],
)
def test_a_prompts_own_number_takes_precedence(own, repeats, repeats_of, ids):
    """A prompt may set its number of repeats, and its ids have the repeat only if there are several."""
    (prompt,) = prompts("P1")
    prompt = replace(prompt, repeat=own, validator=Noop())

    cells = build_cells([prompt], targets("a"), repeats, repeats_of=repeats_of)

    assert [cell.label.removeprefix(cell.target.label) for cell in cells] == ids


def test_numbers_of_their_own_keep_the_order():
    """A target's cells are adjacent, and every repeat comes after the previous repeat of all other prompts."""
    own = [replace(prompt, repeat=n) for prompt, n in zip(prompts("P1", "P2", "P3"), (1, 3, 2), strict=True)]

    cells = build_cells(own, targets("a", "b"))

    order = [("P1", 1), ("P2", 1), ("P3", 1), ("P2", 2), ("P3", 2), ("P2", 3)]
    assert [(cell.target.model, cell.prompt.id, cell.repeat) for cell in cells] == [
        (model, *one) for model in "ab" for one in order
    ]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        pytest.param([], ["P1", "P10", "p1", "Q*"], id="none-means-all"),
        pytest.param(["P1"], ["P1"], id="exact"),
        pytest.param(["P1*"], ["P1", "P10"], id="star"),
        pytest.param(["P1?"], ["P10"], id="question-mark"),
        pytest.param(["[Pp]1"], ["P1", "p1"], id="class"),
        pytest.param(["Q*"], ["Q*"], id="an-id-that-looks-like-a-glob"),
        pytest.param(["p1", "P1"], ["P1", "p1"], id="in-the-suite's-order"),
        pytest.param(["P2"], [], id="no-such-prompt"),
    ],
)
def test_select_prompts(patterns, expected):
    """Ids and globs choose prompts, case-sensitively and in the suite's order."""
    chosen = select_prompts(prompts("P1", "P10", "p1", "Q*"), patterns)

    assert [prompt.id for prompt in chosen] == expected


def test_unmatched():
    """Patterns that match no id are reported, each once and in order."""
    assert unmatched(["P1", "x", "P*", "p1", "x"], ["P1", "P2"]) == ("x", "p1")


LOCAL_A, LOCAL_B = Target(provider="ollama", model="a"), Target(provider="ollama", model="b")
CLOUD = Target(provider="cloud", model="c")
ENDPOINTS = {"ollama": "http://local", "cloud": "https://cloud"}


def _order(*cells):
    keys = {name: CellKey("s", name, target, *(repeat or (1,))) for name, target, *repeat in cells}
    return spread(keys, ENDPOINTS)


def test_endpoints_are_mixed_evenly():
    """A cloud's two cells are among the four of two local models, not after them."""
    cells = [(f"{target.model}{n}", target) for target in (LOCAL_A, CLOUD, LOCAL_B) for n in range(2)]

    assert _order(*cells) == ["a0", "c0", "a1", "b0", "c1", "b1"]


def test_a_target_goes_repeat_by_repeat():
    """Also over several suites, each with its own repeats next to each other."""
    cells = [(f"{suite}{prompt}-r{n}", LOCAL_A, n) for suite in "AB" for n in (1, 2) for prompt in (1, 2)]

    assert _order(*cells) == [f"{suite}{prompt}-r{n}" for n in (1, 2) for suite in "AB" for prompt in (1, 2)]


@given(targets=st.lists(st.sampled_from([LOCAL_A, CLOUD, LOCAL_B])))
def test_spreading_loses_nothing_and_keeps_each_target_in_order(targets):
    """The same cells come out; a target's cells stay in their order, one target an endpoint at a time."""
    cells = {f"{n:03}": target for n, target in enumerate(targets)}

    mixed = _order(*cells.items())

    assert sorted(mixed) == sorted(cells)
    for target in {*targets}:
        assert [c for c in mixed if cells[c] == target] == [c for c in cells if cells[c] == target]
    local = [cells[name] for name in mixed if cells[name] != CLOUD]
    assert local == sorted(local, key=[*dict.fromkeys(cells.values())].index)


def test_every_key_is_there_with_its_default():
    """A definition has all keys of a prompt, the rule as it was written, defaults included."""
    prompt = Prompt(suite="benchmarks/prompts_x.toml", id="P1", name="hello", prompt="Hi", validator=None)

    assert definition(prompt) == dict.fromkeys(prompt_keys()) | {
        "suite": "benchmarks/prompts_x.toml",
        "id": "P1",
        "name": "hello",
        "prompt": "Hi",
        "validator": {"type": "noop"},
        "tags": [],
        "max_output_tokens": 1024,
        "extra": {},
    }


def test_every_field_is_kept():
    """No field of a prompt is missing in its definition, under the keys of a suite."""
    in_other_words = {"min_passes": "pass", "known_failures": "xfail"}
    apart = {"validator_spec", "tools_spec", "surface", "listed", "is_private", "part_labels"}
    named = {one.name for one in fields(Prompt)} - apart
    hashes = {"images_sha256", "tools_sha256"}

    assert {in_other_words.get(name, name) for name in named} | hashes == {*KEYS}


def test_a_private_prompt_has_hashes_of_its_texts():
    """They change with the texts, and the texts are not in the definition."""
    turns = (Turn(user="my secret plan"), Turn(text="a plan"))
    prompt = Prompt(
        suite="s", id="P1", name="n", prompt="my secret plan", system="my secret plan", validator=None,
        messages=turns, history=turns[1:], tools_spec=["read"], is_private=True,
    )  # fmt: skip

    kept, other = definition(prompt), definition(replace(prompt, messages=turns[:1]))

    assert "plan" not in str(kept)
    assert {name for name in kept if kept[name] != other[name]} == {"messages"}


def test_a_value_that_json_cannot_represent_is_refused():
    """A definition never becomes a file that JSON readers reject."""
    prompt = Prompt(suite="s", id="P1", name="n", prompt="p", validator=None, extra={"x": float("nan")})

    with pytest.raises(ValueError, match="not JSON compliant"):
        definition(prompt)
