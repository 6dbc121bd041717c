"""The page of what changed for models between two releases: what is kept, and what is written of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.tools.catalogue import Catalogue, load_catalogue, release_of
from tests.openclaw.agreement import releases
from tests.openclaw.agreement.cases import Case, all_cases
from tests.openclaw.agreement.outcomes import Happened, Outcome

pytestmark = pytest.mark.newest


def _catalogue(release: str) -> Catalogue:
    return replace(load_catalogue(), name=f"openclaw-{release}")


def _outcome(result: str = "one", ended: str = "answer") -> Outcome:
    call = Happened(name="read", kind="ok", result=result)
    return Outcome(verdict="passed", tool_outcome="valid", ended=ended, turns=((call,),), files={})


@pytest.fixture
def cases() -> list[Case]:
    """Three cases."""
    return [*all_cases()][:3]


def test_the_page_is_what_is_kept() -> None:
    """It is written by the command, and its latest comparison is of the release whose tools are offered."""
    changes = releases.load_changes()

    assert releases.PAGE.read_text("utf-8") == releases.render(changes)
    assert changes[0]["newer"] == release_of(None)
    assert changes[0]["played"]


def test_a_difference_is_named(cases: list[Case]) -> None:
    """Another end and other words of a result are, with both releases; a case that one has not played is not."""
    older = {cases[0].id: _outcome(), cases[1].id: _outcome(), cases[2].id: _outcome()}
    newer = {cases[0].id: _outcome(), cases[1].id: _outcome(result="two", ended="loop")}

    change = releases.change_between(_catalogue("1.1.1"), _catalogue("2.2.2"), cases, [older, newer])

    assert change["played"] == [cases[0].id, cases[1].id]
    assert change["differences"] == {
        cases[1].id: [
            "ended: answer in 1.1.1, loop in 2.2.2",
            'the result of `read` is `"one"` in 1.1.1, `"two"` in 2.2.2',
        ]
    }
    page = releases.render([change])
    assert "## 1.1.1 → 2.2.2" in page
    assert "**1 of 2 cases end alike**" in page
    assert f"- `{cases[1].id}`: ended: answer in 1.1.1, loop in 2.2.2; the result of" in page
    assert "direct: 11 tools, 9.2 KB as before: the same" in page


def test_the_minute_of_playing_is_no_difference(cases: list[Case]) -> None:
    """The score of a note falls with its age, and a search takes another time each time."""
    played = [
        {cases[0].id: _outcome(result=f'{{"score": {score}, "searchMs": {ms}}}')}
        for score, ms in (("0.12", 31), ("0.13e-2", 7))
    ]

    change = releases.change_between(_catalogue("1.1.1"), _catalogue("2.2.2"), cases, played)

    assert change["differences"] == {}


def test_cases_with_a_tool_of_one_release_alone_are_counted(cases: list[Case]) -> None:
    """They cannot be played in both, and the page says so."""
    older, newer = _catalogue("1.1.1"), _catalogue("2.2.2")
    older = replace(
        older,
        tools={name: tool for name, tool in older.tools.items() if name != "ls"},
        surfaces={
            name: tuple(tool for tool in sent if tool != "ls") for name, sent in older.surfaces.items()
        },
    )
    with_ls = [case for case in all_cases() if "ls" in {tool.name for tool in case.prompt.tools or ()}]

    change = releases.change_between(older, newer, cases, [{}, {}])

    assert with_ls
    assert change["lacking"] == {"ls": len(with_ls)}
    page = releases.render([{**change, "played": [cases[0].id]}])
    assert f"Not played, because only one of the two has `ls`: {len(with_ls)} cases." in page


def test_without_a_case() -> None:
    """Two releases may be compared by what they send alone."""
    change = releases.change_between(_catalogue("1.1.1"), _catalogue("2.2.2"), [], [])

    assert "No case was played" in releases.render([change])


def test_a_comparison_replaces_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest one is first, and two releases are compared once."""
    monkeypatch.setattr(releases, "CHANGES", tmp_path / "changes.json")
    for older in ("1", "2", "1"):
        releases.keep_change({"older": older, "newer": "3", "surfaces": [older]})

    assert [one["older"] for one in releases.load_changes()] == ["1", "2"]


def test_a_folder_without_openclaw(tmp_path: Path) -> None:
    """The message says what fills a folder."""
    with pytest.raises(SystemExit, match=r"has no OpenClaw; install_openclaw\.py fills such a folder"):
        releases.main([str(tmp_path), str(tmp_path)])
