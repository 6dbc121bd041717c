"""The commands that the text detector knows by name, and the texts that it takes for arguments."""

import pytest

from pytest_openclaw.tools.detector.commands import is_known, names, takes_arguments


def test_the_lists_are_apart():
    """A name is in one list only, in lower case."""
    known = names()
    every = [*known.well_known, *known.everyday, *known.openclaw_tools]

    assert len(every) == len({name.lower() for name in every})


@pytest.mark.parametrize(
    ("name", "known"),
    [
        pytest.param("ps", True, id="well-known"),
        pytest.param("free", True, id="everyday"),
        pytest.param("web_search", True, id="openclaw"),
        pytest.param("python3.11", True, id="version"),
        pytest.param("memory", False, id="stranger"),
        pytest.param("3.11", False, id="version-alone"),
        pytest.param("", False, id="empty"),
    ],
)
def test_is_known(name, known):
    """A command is known by its name, with or without a version."""
    assert is_known(name) is known


@pytest.mark.parametrize(
    ("name", "rest", "taken"),
    [
        pytest.param("x", "-h", True, id="option"),
        pytest.param("x", "  --all", True, id="long-option-after-blanks"),
        pytest.param("x", "/etc", True, id="path"),
        pytest.param("x", "~/a", True, id="path-at-home"),
        pytest.param("x", "~", True, id="home"),
        pytest.param("x", "../a", True, id="path-upwards"),
        pytest.param("x", "a | grep b", True, id="pipe-into-a-command"),
        pytest.param("x", "| y", False, id="pipe-into-a-stranger"),
        pytest.param("x", "- a", False, id="dash"),
        pytest.param("x", "-5 degrees", False, id="negative-number"),
        pytest.param("x", "~ 5", False, id="about"),
        pytest.param("x", "/ y", False, id="slash"),
        pytest.param("x", "a.txt", False, id="file-of-a-stranger"),
        pytest.param("sort", "a.txt", True, id="file"),
        pytest.param("head", "-5 a", True, id="digit-option"),
        pytest.param("kill", "1234", True, id="number"),
        pytest.param("top", "5 processes", False, id="number-of-things"),
        pytest.param("find", ". -name x", True, id="here"),
        pytest.param("date", "of birth", False, id="prose"),
        pytest.param("x", "", False, id="nothing"),
    ],
)
def test_takes_arguments(name, rest, taken):
    """Options, paths and pipes are arguments of anything; everyday words accept a few more."""
    assert takes_arguments(name, rest) is taken
