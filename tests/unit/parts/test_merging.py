"""Several runs become one."""

import itertools
import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.parts.merging import merge_runs
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.summaries import write_run
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.run_files import load_schema
from pytest_openclaw.values.tool_calls import Surface, surface_facts
from tests.searching import examples
from tests.unit.runs.stored_runs import SUITE, A, B, definition, files_of, load, row, store

NOW_MS = 1_800_000_000_000


def _merge(*paths, prefer=None):
    new, notes = merge_runs([load_run(path) for path in paths], prefer)
    return new, [*notes]


def _write(merged, runs_dir):
    path, _ = write_run(merged[0], runs_dir / "whole", exactly=True, now_ms=NOW_MS)
    return path


def _refusal(*paths):
    with pytest.raises(OpenClawError) as refused:
        _merge(*paths)
    return str(refused.value)


@pytest.fixture
def two(tmp_path):
    def stored(**changes):
        return store(tmp_path / "one", [row(A, "P1")]), store(tmp_path / "two", [row(A, "P2")], **changes)

    return stored


TARGETS = [A, B, Target(provider="lab", model="a_b"), Target(provider="lab", model="a:b")]


@st.composite
def _cells(draw):
    """Rows of different cells, with the fields that a summary counts."""
    keys = draw(st.sets(st.tuples(st.sampled_from(TARGETS), st.integers(1, 12)), max_size=14))
    return [
        row(
            target,
            f"P{number}",
            started_at_ms=(started := draw(st.integers(0, 999))),
            ended_at_ms=started + (e2e_ms := draw(st.integers(0, 9))),
            e2e_ms=e2e_ms,
            ttft_ms=draw(st.none() | st.integers(0, 9)),
            objective_pass=(passed := draw(st.sampled_from([True, False, None]))),
            violation=None if passed is not False else draw(st.sampled_from(["too long", "3 words"])),
            tool_outcome=draw(st.sampled_from([None, "valid", "no_call", "restrained"])),
        )
        for target, number in sorted(keys, key=lambda key: (TARGETS.index(key[0]), key[1]))
    ]


def _shot(number):
    return {"taken_at_ms": number}


@examples(8)
@given(
    _cells(), st.lists(st.integers(0, 2), min_size=14, max_size=14), st.lists(st.integers(0, 5), min_size=3)
)
def test_the_order_of_the_runs_makes_no_difference(records, hands, numbers):
    """Every file of the merged run is the same, byte for byte, whichever run is named first."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        parts = [
            store(
                folder / f"part{number}",
                [one for one, hand in zip(records, hands, strict=False) if hand == number],
                n_selected=dict.fromkeys(TARGETS, numbers[number] + 9),
                host=f"host{numbers[number]}",
                serving={A.label: {"server": {"version": numbers[number]}}},
                snapshots={(A, "before"): _shot(numbers[number]), (A, "after"): _shot(numbers[number])},
                retries=numbers[number],
                tail=b"{" * numbers[number],
            )
            for number in range(3)
        ]
        merged = [
            files_of(_write(_merge(*order), folder / f"merged{number}"))
            for number, order in enumerate(itertools.permutations(parts))
        ]

    assert all(files == merged[0] for files in merged[1:])


def test_one_run_is_copied(tmp_path):
    """The merge of one run has its rows byte for byte, its order, and its figures."""
    path = store(tmp_path / "one", [row(B, "P2"), row(B, "P10"), row(A, "P2")], host="box")

    merged = _merge(path)
    whole = _write(merged, tmp_path)

    assert merged[1] == []
    assert (whole / "results.jsonl").read_bytes() == (path / "results.jsonl").read_bytes()
    old, new = load(path, "config.json"), load(whole, "config.json")
    assert new.pop("parts")[0]["run_id"] == "one"
    assert {**new, "run_id": "one"} == old
    assert load(whole, "inventory.json")["host"] == {"name": "box"}
    jsonschema.validate(load(whole, "summary.json"), load_schema("summary"))
    assert [group["model"] for group in load(whole, "summary.json")["groups"]] == ["b", "a"]


def test_different_targets_from_different_machines(tmp_path):
    """Targets are joined with their cells, hosts stay separate, each machine's facts are under `parts`."""
    serving = {A.label: {"server": {"digest": "d"}}}
    one = store(tmp_path / "one", [row(A, "P1")], host="desktop", serving=serving)
    two = store(tmp_path / "two", [row(B, "P1"), row(B, "P2")], host="lap")

    whole = _write(_merge(one, two), tmp_path)

    config, inventory = load(whole, "config.json"), load(whole, "inventory.json")
    assert [(target["model"], target["n_cells"]) for target in config["targets"]] == [("a", 1), ("b", 2)]
    assert config["models"] == ["a", "b"]
    assert [prompt["id"] for prompt in config["prompts"]] == ["P1", "P2"]
    assert inventory["host"] is None
    assert inventory["memory_total_bytes"] == 8
    assert [part["host"]["name"] for part in inventory["parts"]] == ["desktop", "lap"]
    assert inventory["targets"] == {A.label: {"server": {"digest": "d"}}}


def test_the_first_snapshot_before_and_the_last_after_are_kept(tmp_path):
    """They are as in a single run, in the summary and as files."""
    parts = [
        store(
            tmp_path / f"part{n}",
            [row(A, f"P{n}")],
            snapshots={(A, "before"): _shot(n), (A, "after"): _shot(10 + n)},
        )
        for n in (2, 1, 3)
    ]

    whole = _write(_merge(*parts), tmp_path)

    for moment, number in (("before", 1), ("after", 13)):
        assert str(number) in (whole / f"resources_lab__a_{moment}.txt").read_text("utf-8")
        (group,) = load(whole, "summary.json")["groups"]
        assert group[f"resources_{moment}"] == _shot(number)


def test_different_gates_are_none(two, tmp_path):
    """If the runs had different gates, the merged run has none, and says so."""
    merged = _merge(*two(gates=GateSettings.of(min_pass_rate=0.5).to_json()))
    whole = _write(merged, tmp_path)

    assert merged[1] == ["the gates differ, so that no gate applies to the whole"]
    assert load(whole, "summary.json")["verdict"] == "not_gated"
    assert load(whole, "config.json")["gates"] is None


def test_an_unfinished_run_is_reported(tmp_path):
    """A killed run's rows are merged; the number of missing ones is reported, unless another run has them."""
    unfinished = {"n_selected": {A: 3, B: 1}, "prompts": [definition(f"P{number}") for number in (1, 2, 3)]}
    killed = store(tmp_path / "killed", [row(A, "P1")], tail=b'{"record_type": "res', **unfinished)
    other = store(tmp_path / "other", [row(A, "P7")])
    rest = store(tmp_path / "rest", [row(A, "P2"), row(A, "P3"), row(B, "P2")])

    merged = _merge(killed, other)
    summary = load(_write(merged, tmp_path), "summary.json")

    assert merged[1] == [f"{killed} is not finished: 3 of its 4 cells have no row"]
    assert (summary["state"], summary["n_cells"], summary["n_rows"]) == ("interrupted", 5, 2)
    # The killed run does not say which one of its three prompts was selected for B.
    assert _merge(killed, rest)[0].n_selected == {A: 3, B: 2}


def test_a_model_that_was_not_served_alike_is_reported(tmp_path):
    """Another version or digest under one name is another model: merged, with a note."""
    one, two = (
        store(tmp_path / digest, [row(A, digest)], serving={A.label: {"server": {"digest": digest}}})
        for digest in ("d1", "d2")
    )

    merged = _merge(two, one)
    inventory = load(_write(merged, tmp_path), "inventory.json")

    assert merged[1] == [f"lab/a was not served alike: digest is d1 in {one}, d2 in {two}"]
    assert inventory["targets"][A.label]["server"] is None
    assert [part["targets"][A.label]["server"]["digest"] for part in inventory["parts"]] == ["d1", "d2"]


def test_each_machine_may_reach_its_own_server(two, tmp_path):
    """Addresses and the pace may differ, and the result has none."""
    there = {"lab": {"kind": "ollama_openai", "base_url": "http://10.0.0.2/v1"}}

    merged = _merge(*two(providers=there, retries=0))
    config = load(_write(merged, tmp_path), "config.json")

    assert merged[1] == []
    assert config["providers"] == {"lab": {"kind": "ollama_openai", "base_url": None}}
    assert (config["retries"], config["verdict"]) == (None, "cells")
    assert [part["retries"] for part in config["parts"]] == [5, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stream": False}, "stream is true in {one}, false in {two}"),
        ({"timeout_s": 5.0}, "timeout_s is 300.0 in {one}, 5.0 in {two}"),
        (
            {"providers": {"lab": {"kind": "openai_responses"}}},
            "kind of the provider lab is ollama_openai in {one}, openai_responses in {two}",
        ),
    ],
    ids=["stream", "timeout", "provider-kind"],
)
def test_settings_that_shape_a_request_must_be_equal(two, changes, message):
    """Runs with different requests are refused, with both values and both runs."""
    first, second = two(**changes)

    ending = ". Merge runs that asked alike; ask the others again."
    assert _refusal(second, first) == message.format(one=first, two=second) + ending


def test_another_release_is_refused(tmp_path):
    """Runs of one release judge alike."""
    one, two = (
        store(tmp_path / name, [row(A, name)], inventory={"packages": {"pytest-openclaw": version}})
        for name, version in (("one", "1.0"), ("two", "1.1"))
    )

    assert _refusal(one, two).startswith(f"pytest-openclaw is 1.0 in {one}, 1.1 in {two}. ")


def test_a_merged_run_is_refused(two, tmp_path):
    """All runs are merged at once."""
    one, other = two()
    whole = _write(_merge(one), tmp_path)

    assert _refusal(whole, other) == f"{whole} is itself merged. Merge the runs that it consists of."


def test_one_prompt_with_two_definitions_is_refused(tmp_path):
    """The refusal names suite, prompt, keys and runs, the first five."""
    ids = [f"P{number}" for number in range(8)]
    changed = [definition(prompt_id, validator={"type": "exact", "value": "x"}) for prompt_id in ids]
    one = store(tmp_path / "one", [row(A, prompt_id) for prompt_id in ids])
    two = store(tmp_path / "two", [row(B, prompt_id) for prompt_id in ids], prompts=changed)

    refusal = _refusal(one, two)

    assert f"{SUITE}: the prompt P0 has another validator in {one}, {two}; " in refusal
    assert ("P4" in refusal, "P5" in refusal) == (True, False)
    assert "and 3 more" in refusal


def test_the_same_row_twice_is_one_row(tmp_path):
    """A shard that was copied, and merged with its copy, counts once; its cells too."""
    records = [row(A, "P1"), row(A, "P2"), row(B, "P1")]
    one = store(tmp_path / "one", records)
    copy = store(tmp_path / "copy", records[:2])

    new, notes = _merge(one, copy, one)

    assert new.n_selected == {A: 2, B: 1}
    assert len(new.rows) == 3
    assert notes == []


def test_different_rows_of_a_cell_are_refused(tmp_path):
    """Without the user's choice, it is open which of two rows counts."""
    one = store(tmp_path / "one", [row(A, f"P{number}") for number in range(7)])
    two = store(tmp_path / "two", [row(A, f"P{number}", ended_at_ms=9) for number in range(7)])

    refusal = _refusal(one, two)

    assert refusal.startswith(f"different rows of one cell: {SUITE}::P0[lab/a], {SUITE}::P1[lab/a], ")
    assert ("P4[" in refusal, "P5[" in refusal) == (True, False)
    assert refusal.endswith(
        "and 2 more. Give --prefer=newest or --prefer=oldest, or leave one of the runs out."
    )


@pytest.mark.parametrize(("prefer", "kept"), [("newest", [5000, 1200]), ("oldest", [1100, 300])])
def test_the_user_may_say_which_row_counts(tmp_path, prefer, kept):
    """The row that ended last, or first, stays, whichever run it is in."""
    one = store(tmp_path / "one", [row(A, "P1", ended_at_ms=5000), row(A, "P2", ended_at_ms=300)])
    two = store(tmp_path / "two", [row(A, "P1", ended_at_ms=1100), row(A, "P2", ended_at_ms=1200)])

    new, notes = _merge(one, two, prefer=prefer)

    assert [found.record.ended_at_ms for found in new.rows] == kept
    assert new.n_selected == {A: 2}
    assert notes == [f"2 cells have different rows; the {prefer} is kept"]


def test_runs_on_openclaw_are_merged_with_their_surface(tmp_path):
    """Targets on both surfaces stay apart, and the merged run keeps what OpenClaw sends."""
    surface = Surface(source="substitute", release="openclaw-2026.9.6", system="You are an assistant.")
    paths = [tmp_path / prompt_id for prompt_id in ("P1", "P2")]
    for path in paths:
        rows = [row(one, path.name, surface=one.surface) for one in (A, A.on("openclaw"))]
        store(path, rows, surface=surface_facts(surface))
        (path / "surface.json").write_text(json.dumps(asdict(surface)))

    whole = _write(_merge(*paths), tmp_path / "runs")

    part = load_run(whole)
    assert (part.surface, part.n_selected) == (surface, {A: 2, A.on("openclaw"): 2})
    assert load(whole, "config.json")["surface"] == surface_facts(surface)
    assert {group["surface"] for group in load(whole, "summary.json")["groups"]} == {"listed", "openclaw"}
