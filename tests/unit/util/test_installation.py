"""Where the installed copy came from, and the commands that install more of it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.util.installation import (
    InstallSource,
    Portable,
    install_command,
    parse_origin,
    portable,
)

GIT = {"vcs_info": {"vcs": "git", "commit_id": "c0ffee", "requested_revision": "main"}}


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        pytest.param({"url": "file:///src/p", "dir_info": {}}, 'pip install "/src/p[cost]"', id="folder"),
        pytest.param({"url": "file:///src/a%20b", "dir_info": {"editable": True}}, 'pip install -e "/src/a b[cost]"', id="editable"),
        pytest.param(
            {"url": "ssh://git@h.example/p.git", **GIT, "subdirectory": "a/b"},
            'pip install "pytest-openclaw[cost] @ git+ssh://git@h.example/p.git@c0ffee#subdirectory=a/b"',
            id="vcs-below-the-top",
        ),
        pytest.param(
            {"url": "https://me:dummy@h.example/p.whl", "archive_info": {}},
            'pip install "pytest-openclaw[cost] @ https://h.example/p.whl"',
            id="archive-without-its-password",
        ),
        pytest.param(
            {"url": "https://${USER}:${TOKEN}@h.example/p.whl", "archive_info": {}},
            "pip install 'pytest-openclaw[cost] @ https://${USER}:${TOKEN}@h.example/p.whl'",
            id="variables-are-no-password",
        ),
    ],
)  # fmt: skip
def test_an_extra_is_installed_from_where_the_copy_came(direct_url: dict[str, Any], command: str) -> None:
    """Each kind of `direct_url.json` (PEP 610) gives the command that pip takes."""
    assert install_command("cost", parse_origin(direct_url)) == command


def test_a_copy_from_an_index_has_no_direct_url() -> None:
    """It is installed by its name."""
    assert install_command("cost", InstallSource()) == 'pip install "pytest-openclaw[cost]"'
    assert install_command(source=InstallSource()) == 'pip install "pytest-openclaw"'


def test_what_every_machine_can_reach_stays() -> None:
    """An index and another host need no preparation; a wheel on this machine does."""
    assert portable("local", InstallSource()) == Portable(requirement="pytest-openclaw[local]")
    far = InstallSource(url="https://h.example/p.whl")
    assert portable(source=far) == Portable(requirement="pytest-openclaw @ https://h.example/p.whl")
    near = InstallSource(url="file:///tmp/p.whl")
    assert portable(source=near).prepare == (
        'pip wheel --no-deps --wheel-dir wheels "pytest-openclaw @ file:///tmp/p.whl"'
    )
