"""`publish`, `compare-to` and `leaderboard`: files of figures without texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.commands import main
from tests.unit.stored.stored_runs import A, B, definition, row, store

N = 12
SECRET = "the text of a reply"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a run of a target that calls right, and one of a target that does not."""
    monkeypatch.chdir(tmp_path)
    _store("good", A, right=True)
    _store("bad", B, right=False)
    return tmp_path


def _store(name: str, target: Any, *, right: bool, prompt: str = "Do it.") -> None:
    rows = [
        row(
            target, f"P{n}", tool_demand="call", tools_offered=1, tool_use_success=right,
            tool_outcome="valid" if right else "no_call", raw_output=SECRET,
        )
        for n in range(N)
    ]  # fmt: skip
    store(Path("runs", name), rows, prompts=[definition(f"P{n}", prompt=f"{prompt} {n}") for n in range(N)])


def _publish(*names: str) -> None:
    for name in names:
        assert main(["publish", name, "--into", f"{name}.json"]) == 0


def test_a_file_has_figures_and_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a prompt, nor a reply, nor the host's name is in it; the same command checks it."""
    _publish("good")
    text = Path("good.json").read_text("utf-8")
    content = json.loads(text)
    (target,) = content["targets"]
    capsys.readouterr()

    assert main(["publish", "good.json"]) == 0

    assert "is a result file of 1 target: lab/a" in capsys.readouterr().out
    assert not [word for word in (SECRET, "Do it.", "box", "P1") if f'"{word}' in text]
    assert (target["tool_use"]["n"], target["tool_use"]["n_success"]) == (N, N)
    assert target["cells"] == [[1, 1, 1, 1]] * N
    assert len({prompt["digest"] for prompt in content["prompts"]}) == N


def test_the_digest_changes_with_the_prompt_alone() -> None:
    """A tag makes no other prompt; another validator does."""
    same, tagged, judged = (
        [definition("P1"), *others]
        for others in ([], [definition("P2", tags=["x"], prompt="Do P1.")], [definition("P3", prompt="Do P1.",
                                                                           validator={"type": "exact"})])
    )  # fmt: skip
    for name, prompts in (("same", same), ("tagged", tagged), ("judged", judged)):
        store(Path("runs", name), [row(A, one["id"]) for one in prompts], prompts=prompts)

    _publish("same", "tagged", "judged")

    digests = {
        name: [one["digest"] for one in json.loads(Path(f"{name}.json").read_text())["prompts"]]
        for name in ("same", "tagged", "judged")
    }
    assert len(set(digests["tagged"])) == 1
    assert set(digests["same"]) == set(digests["tagged"])
    assert len(set(digests["judged"])) == 2


def test_a_run_is_placed_beside_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The difference over the common prompts is shown, with its interval and what the test says."""
    _publish("good")
    capsys.readouterr()

    assert main(["compare-to", "good.json", "--run", "bad"]) == 0
    shown = capsys.readouterr().out
    assert main(["compare-to", "good.json", "--run", "bad", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]

    assert "-100 (-100 to -56)" in shown
    assert "p < 0.05" in shown
    assert (found["n_prompts"], found["difference"]) == (N, -1.0)


def test_what_cannot_be_compared_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a common prompt there is no difference."""
    _publish("good")
    _store("other", B, right=True, prompt="Do something else.")
    capsys.readouterr()

    assert main(["compare-to", "*.json", "--run", "other"]) == 0

    assert "no: no tool prompt in common" in " ".join(capsys.readouterr().out.split())


def test_the_page_groups_by_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A target not to be trusted is apart from the others, and names are escaped."""
    _publish("good", "bad")
    odd = json.loads(Path("good.json").read_text())
    odd["targets"][0]["model"] = "<b>odd</b>"
    Path("odd.json").write_text(json.dumps(odd))
    capsys.readouterr()

    assert main(["leaderboard", "*.json", "--out", "page.html", "--json"]) == 0

    groups = json.loads(capsys.readouterr().out)
    page = Path("page.html").read_text("utf-8")
    assert [one["target"] for one in groups["best"]] == ["lab/<b>odd</b>", "lab/a"]
    assert [one["target"] for one in groups["unfit"]] == [B.label]
    assert page.index("Not shown to be worse") < page.index("Unsafe, or not to be trusted")
    assert "&lt;b&gt;odd&lt;/b&gt;" in page
    assert "<b>odd" not in page


def _published(name: str, **changes: Any) -> None:
    """A copy of `good.json` as another file, with changes of its target, its settings or its surface."""
    content = json.loads(Path("good.json").read_text())
    content["settings"] |= changes.pop("settings", {})
    content["surface"] = changes.pop("sent", None)
    content["targets"][0] |= changes
    Path(name).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        pytest.param({"settings": {"temperature": 0.7}}, "no: other temperature 0.7", id="settings"),
        pytest.param(
            {"surface": "openclaw", "sent": {"release": "2026.9.6", "sha256": "0123456789abcdef"}},
            "no: other surface openclaw 2026.9.6 01234567",
            id="surface",
        ),
        pytest.param(
            {"recommendation": {"kind": "trusted", "sentence": "trusted", "release": "2026.1.1"}},
            "no: other release 2026.1.1",
            id="release",
        ),
    ],
)
def test_results_under_other_conditions_are_not_compared(
    changes: dict[str, Any], remark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table names the condition with its value; on the page such a result is apart from the others."""
    _publish("good")
    _published("same.json", model="same")
    _published("other.json", model="other", **changes)
    capsys.readouterr()

    assert main(["compare-to", "other.json", "--run", "good"]) == 0
    beside = " ".join(capsys.readouterr().out.split())
    assert main(["leaderboard", "*.json", "--out", "page.html", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)

    assert remark in beside
    assert [one["target"] for one in groups["best"]] == ["lab/a", "lab/same"]
    assert [one["target"].removesuffix("+openclaw") for one in groups["alone"]] == ["lab/other"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"cells": [[1, 2, 1, 1]] * N}, "more passed or right cells than cells", id="cells"),
        pytest.param({"cells": [[9, 1, 9, 1]] * N}, "`cells` and `passed` contradict", id="sums"),
    ],
)
def test_figures_that_contradict_each_other_are_refused(
    changes: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts of prompts do not exceed the figures of their target."""
    _publish("good")
    _published("odd.json", **changes)

    assert main(["publish", "odd.json"]) == 4

    assert message in capsys.readouterr().err


def test_a_rate_that_is_not_of_its_counts_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A file cannot claim a better rate than its counts have."""
    _publish("good")
    target = json.loads(Path("good.json").read_text())["targets"][0]
    _published("odd.json", tool_use=target["tool_use"] | {"rate": 0.5})

    assert main(["publish", "odd.json"]) == 4

    assert "`tool_use`: its rate is not that of its counts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"format": "other"}, "is no result file; `pytest-openclaw publish RUN`", id="foreign"),
        pytest.param({"format_version": 99}, "the newest known here is 1; upgrade", id="newer"),
        pytest.param({"prompts": []}, "has 12 `cells` for 0 prompts", id="cells-without-prompts"),
        pytest.param({"targets": [{"model": "x"}]}, "is not as a run writes it", id="not-by-the-schema"),
    ],
)
def test_a_malformed_file_is_refused(
    change: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that reads one says what is wrong, with the file."""
    _publish("good")
    content = json.loads(Path("good.json").read_text()) | change
    Path("changed.json").write_text(json.dumps(content))
    capsys.readouterr()

    for words in (["publish", "changed.json"], ["compare-to", "changed.json"],
                  ["leaderboard", "changed.json", "--out", "page.html"]):  # fmt: skip
        assert main(words) == 4
        shown = capsys.readouterr().err
        assert message in shown
        assert "changed.json" in shown


def test_a_run_without_an_answer_is_not_published(capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to share."""
    store(Path("runs/none"), [row(A, "P1", availability_status="error", success=False)])

    assert main(["publish", "none"]) == 4

    assert "has no answered cell" in capsys.readouterr().err


def test_the_shipped_example_is_a_result_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The embedded model's file in the documentation has today's format."""
    shipped = Path(__file__).parents[2] / "docs" / "results" / "smollm2-135m.json"

    assert main(["publish", str(shipped)]) == 0

    assert "a result file of 1 target: llama_cpp/smollm2:135m" in capsys.readouterr().out
