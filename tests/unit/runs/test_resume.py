"""What a resumed run keeps, reports again and refuses."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.session import Plan, RunSession, find_changes, settings_of
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.settings import THINKING_ROOM_TOKENS, Settings
from tests.unit.reports.summaries import fault, record
from tests.unit.runs.stored_runs import LAB, SUITE, A, config_of, definition, store


def line(row):
    return json.dumps(to_row(row), ensure_ascii=False).encode() + b"\n"


ROWS = [
    record(prompt_id=f"P{n}", raw_output="é🎉" * n) if n != 3 else fault(prompt_id=f"P{n}") for n in range(6)
]
WHOLE = b"".join(map(line, ROWS))
ENDS = [len(b"".join(map(line, ROWS[: n + 1]))) for n in range(len(ROWS))]


@given(cut=st.integers(min_value=0, max_value=len(WHOLE)) | st.sampled_from([end - 1 for end in ENDS]))
def test_wherever_a_file_is_cut_the_answered_rows_before_are_kept(tmp_path_factory, cut):
    """A session that continues the run keeps them byte for byte, in order, and nothing else."""
    path = store(tmp_path_factory.mktemp("cut") / "r", [])
    (path / "results.jsonl").write_bytes(WHOLE[:cut])
    # A row may lack its line feed.
    expected = [row for row, end in zip(ROWS, ENDS, strict=True) if end - 1 <= cut and row.success]

    nothing = Plan(cells=frozenset(), targets=(), prompts={}, providers={})
    with RunDirectory(path) as directory:
        session = RunSession(directory, whole(Settings)(), nothing, load_run(path, even_active=True))

    assert (path / "results.jsonl").read_bytes() == b"".join(map(line, expected))
    assert [row.prompt_id for row in session.records] == [row.prompt_id for row in expected]


GATES = {"min_pass_rate": 0.5, "min_tool_rate": None, "require_tier": 1}
JUDGED = {"verdict": "gate", "gates": GATES, "fail_unavailable": True, "stream": False}


def config(**changes):
    given = {"thinking_room_tokens": dict(THINKING_ROOM_TOKENS), **changes}
    return config_of("r", {A: 2}, given.pop("prompts", [definition("P1"), definition("P2")]), **given)


def test_a_run_is_judged_by_its_own_settings():
    """Targets, streaming and the options for the exit status come from the run; retries do not."""
    now = whole(Settings)(timeout_s=7.0, retries=0, gates=GateSettings.of(min_tool_rate=0.9))

    settings = settings_of(config(**JUDGED), now, given=())

    gates = GateSettings.of(min_pass_rate=0.5, require_tier=1)
    own = {"targets": (A,), "stream": False, "verdict": "gate", "gates": gates, "fail_unavailable": True}
    assert settings == whole(Settings)(**own, timeout_s=7.0, retries=0)


def test_the_command_line_goes_before_the_run():
    """Each option of the command line takes precedence."""
    now = whole(Settings)(
        verdict="cells", gates=GateSettings.of(require_tier=3), stream=True, fail_unavailable=False
    )
    given = {"verdict", "require-tier", "stream", "fail-unavailable"}

    settings = settings_of(config(**JUDGED), now, given=given)

    assert settings.gates == GateSettings.of(min_pass_rate=0.5, require_tier=3)
    assert (settings.verdict, settings.stream, settings.fail_unavailable) == ("cells", True, False)


def plan(**changes):
    """The plan of a session that resumes `config()`."""
    prompts = changes.pop("prompts", (definition("P1"), definition("P2")))
    values = {
        "cells": frozenset(CellKey(SUITE, name, A, 1) for name in ("P1", "P2")),
        "targets": (A,),
        "prompts": {(one["suite"], one["id"]): one for one in prompts},
        "providers": {"lab": LAB},
        **changes,
    }
    return Plan(**values)


ROW = record(A, suite=SUITE)
PYTHON = definition("R1", suite="test_a.py", validator={"type": "python"})


@pytest.mark.parametrize(
    ("began", "now"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({}, {"prompts": (definition("P2", tags=["x"]), definition("P1", timeout_s=1.0, extra={"k": 1}))}, id="free-keys"),
        pytest.param({"retries": 1, "timeout_s": 1.0, "verdict": "cells", "concurrency": {}}, {}, id="free-settings"),
        pytest.param({}, {"providers": {"lab": {**LAB, "key_env": "L"}}}, id="a-key-of-another-name"),
        pytest.param({"some_day": "more"}, {}, id="unknown-settings"),
    ],
)  # fmt: skip
def test_differences_that_do_not_matter(began, now):
    """These runs can be resumed."""
    assert find_changes(config(**began), [ROW.key], plan(**now), whole(Settings)()) == []


THREE_TIMES = {"cells": frozenset(CellKey(SUITE, name, A, n) for name in ("P1", "P2") for n in (1, 2, 3))}
TWICE = {"repeat": 2, "targets": [{**asdict(A), "n_cells": 4}]}
SEVERAL = "config.json: until_conclusive was off while each prompt was asked 2 times, and is on"
LOOKS = "config.json: looks was 1, and is 1, 3"
UNTIL = whole(Settings)(repeat=3, until_conclusive=True)


@pytest.mark.parametrize(
    ("began", "now", "change"),
    [
        pytest.param({}, whole(Settings)(repeat=3), None, id="more"),
        pytest.param({}, UNTIL, None, id="once-then-until"),
        pytest.param(TWICE, whole(Settings)(repeat=3), None, id="still-more"),
        pytest.param(
            {"repeat": 4}, whole(Settings)(repeat=3), "config.json: repeat was 4, and is 3", id="fewer"
        ),
        pytest.param(TWICE, UNTIL, SEVERAL, id="several-then-until"),
        pytest.param({"until_conclusive": True, "looks": [1]}, UNTIL, LOOKS, id="other-looks"),
    ],
)
def test_repeats_may_grow(began, now, change):
    """A run can be resumed with more repeats than before, of the same cells."""
    changes = find_changes(config(**began), [ROW.key], plan(**THREE_TIMES), now)

    assert changes == ([] if change is None else [change])


@pytest.mark.parametrize(
    ("began", "given", "expected"),
    [
        pytest.param({"repeat": 4}, set(), (4, False), id="as-started"),
        pytest.param({}, set(), (1, False), id="unsaid"),
        pytest.param({"repeat": 4}, {"repeat"}, (9, False), id="more"),
        pytest.param({"repeat": 4, "until_conclusive": True}, set(), (4, True), id="until-as-started"),
        pytest.param({"repeat": 4, "until_conclusive": True}, {"repeat"}, (9, True), id="another-bound"),
        pytest.param({"repeat": 1}, {"until-conclusive"}, (9, True), id="until-from-now-on"),
        pytest.param({"repeat": None, "parts": [{"repeat": 2}, {}]}, set(), (2, False), id="merged"),
    ],
)
def test_how_often_is_the_runs_own(began, given, expected):
    """The ini file, which is in the settings here, does not change it; the command line does."""
    settings = settings_of(config(**began), whole(Settings)(repeat=9, until_conclusive=True), given=given)

    assert (settings.repeat, settings.until_conclusive) == expected


@pytest.mark.parametrize(
    ("began", "now", "expected"),
    [
        *(
            pytest.param(
                {}, {"prompts": (definition("P1"), definition("P2", **{key: value}))},
                f"{SUITE}: prompt P2: its {key} has changed", id=key,
            )
            for key, value in {
                "prompt": "hi", "validator": {"type": "exact", "value": "x"}, "system": "be brief", "name": "new",
                "expected_tool_calls": ["df"], "category": "x", "max_output_tokens": 7,
                "tools_sha256": "0", "images_sha256": ["0"], "world": {"steps": 3}, "probe": "secret", "padding_tokens": 2000,
                "pressure_of": "X",
            }.items()
        ),
        pytest.param({}, {"prompts": (definition("P1"),)}, f"{SUITE}: prompt P2 is not selected now, or was removed", id="fewer"),
        pytest.param({"prompts": [definition("P1")]}, {}, f"{SUITE}: prompt P2 is selected now, and was not in the recorded run", id="more"),
        pytest.param({"prompts": [*config()["prompts"], PYTHON]}, {}, "test_a.py: prompt R1 is not selected now, or was removed", id="python-gone"),
        pytest.param({"stream": False}, {}, "config.json: stream was off, and is on", id="stream"),
        pytest.param({"temperature": 1}, {}, "config.json: temperature was 1, and is 0", id="temperature"),
        pytest.param({"thinking_room_tokens": {"low": 1}}, {}, "config.json: thinking_room_tokens was {'low': 1}, and is", id="thinking-room"),
        pytest.param({}, {"providers": {"lab": {**LAB, "base_url": "http://two"}}}, "config.json: provider lab: its base_url was http://127.0.0.1:1/v1, and is http://two", id="address"),
        pytest.param({}, {"providers": {"lab": {**LAB, "kind": "q"}}}, "provider lab: its kind was ollama_openai, and is q", id="kind"),
        pytest.param({}, {"providers": {"lab": {**LAB, "new": 1}}}, "provider lab: its new was not set, and is 1", id="something-new"),
        pytest.param({}, {"cells": frozenset(CellKey(SUITE, name, A, 1) for name in ("P2", "P3"))}, f"{SUITE}: P1[lab/a] has a row, and is not selected now", id="other-cells"),
    ],
)  # fmt: skip
def test_changes_that_count(began, now, expected):
    """Each is reported with its place, in one sentence."""
    (change,) = find_changes(config(**began), [ROW.key], plan(**now), whole(Settings)())

    assert change.startswith(expected) or change.endswith(expected)


def test_a_provider_without_rows_may_have_moved():
    """Without a measurement nothing can be mixed."""
    moved = plan(providers={"lab": {**LAB, "base_url": "http://two"}})

    assert find_changes(config(), [], moved, whole(Settings)()) == []
