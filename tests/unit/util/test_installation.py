"""Where the installed copy came from, and the commands that install more of it."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

from pytest_openclaw.util.installation import install_command, is_local

GIT = {"vcs_info": {"vcs": "git", "commit_id": "c0ffee", "requested_revision": "main"}}


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        pytest.param(None, 'pip install "pytest-openclaw[cost]"', id="index"),
        pytest.param({"url": "file:///src/p", "dir_info": {}}, 'pip install "/src/p[cost]"', id="folder"),
        pytest.param({"url": "file:///src/a%20b", "dir_info": {"editable": True}}, 'pip install -e "/src/a b[cost]"', id="editable"),
        pytest.param(
            {"url": "ssh://git@h.example/p.git", **GIT, "subdirectory": "a/b"},
            'pip install "pytest-openclaw[cost] @ git+ssh://git@h.example/p.git@c0ffee#subdirectory=a/b"',
            id="vcs-below-the-top",
        ),
        pytest.param(
            {"url": "https://${USER}:${TOKEN}@h.example/p.whl", "archive_info": {}},
            "pip install 'pytest-openclaw[cost] @ https://${USER}:${TOKEN}@h.example/p.whl'",
            id="variables-are-no-password",
        ),
    ],
)  # fmt: skip
def test_an_extra_is_installed_from_where_the_copy_came(
    monkeypatch: pytest.MonkeyPatch, direct_url: dict[str, Any] | None, command: str
) -> None:
    """Each kind of `direct_url.json` (PEP 610) gives the command that pip takes."""
    text = None if direct_url is None else json.dumps(direct_url)
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: text)

    assert install_command("cost") == command
    assert is_local() == ("file:" in str(direct_url))
