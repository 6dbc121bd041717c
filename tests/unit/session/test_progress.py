"""The progress of a run, as one line."""

from __future__ import annotations

import pytest

from pytest_openclaw.session.progress import Progress


class Clock:
    """Seconds that advance only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_endpoints_side_by_side() -> None:
    """The time left is that of the slowest endpoint; each endpoint's oldest cell is named, longest first."""
    clock = Clock()
    progress = Progress({"p/m": 100, "q/n": 20}, {"p/m": "one", "q/n": "two"}, clock)

    for _ in range(50):
        clock.now += 1
        progress.count("p/m", 0.0)
    progress.count("q/n", 0.25)
    clock.now += 10

    line = progress.line(120, {"one": "s.toml::P51[p/m]", "two": "s.toml::P2[q/n]"})
    assert line == "openclaw 51/120, 51.0/min, 19 min left, 0.25 USD; P51[p/m] 10 s, P2[q/n] 10 s"


def test_kept_and_left_out_cells_do_not_count_for_the_rate() -> None:
    """A resumed run's rate is that of its own requests."""
    clock = Clock()
    progress = Progress({"p/m": 10}, {"p/m": "one"}, clock)
    for _ in range(4):
        progress.leave_out("p/m", is_kept=True)
    progress.leave_out("p/m")
    for _ in range(3):
        clock.now += 2
        progress.count("p/m", None)

    assert progress.line(79, {}) == "openclaw 7/9, 30.0/min, 4 s left"


def test_a_cell_that_is_asked_again_later() -> None:
    """It shows time and reason as long as it waits, without characters that control a terminal."""
    clock = Clock()
    progress = Progress({"p/m": 10}, {"p/m": "one"}, clock)
    progress.note_wait("s.toml::P4[p/m]", "openai_responses: HTTP 429: slow down\x1b[2J.", 7.6)

    during = progress.line(100, {"one": "s.toml::P4[p/m]"})
    clock.now += 8
    over = progress.line(100, {"one": "s.toml::P4[p/m]"})

    assert during == "openclaw 0/10; P4[p/m] again in 8 s: openai_responses: HTTP 429: slow down\\x1b[2J"
    assert over == "openclaw 0/10; P4[p/m] 8 s"


@pytest.mark.parametrize("width", [20, 40, 79])
def test_it_fits_the_terminal(width: int) -> None:
    """This holds for any number of endpoints and any length of names."""
    labels = {f"p{n}/{'long' * 20}": 1 for n in range(9)}
    progress = Progress(labels, {label: label for label in labels}, Clock())

    line = progress.line(width, {label: f"s.toml::P1[{label}]" for label in labels})

    assert len(line) <= width
