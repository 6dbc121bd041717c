"""The built-in providers by name: the cost of listing and of creating them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.values.protocols import ProviderSetup


@pytest.mark.parametrize("builtin", BUILTIN, ids=lambda builtin: builtin.name)
def test_a_builtin_is_what_its_name_says(builtin):
    """The table's name, the class's name and the created object are one provider."""
    setup = ProviderSetup(name=builtin.name)

    assert builtin.load().name == builtin.name
    assert type(builtin(setup)) is builtin.load()


@pytest.mark.parametrize(
    ("made", "loaded"),
    [
        pytest.param(None, set(), id="known"),
        pytest.param("gemini", {"gemini"}, id="made"),
    ],
)
def test_only_what_is_used_is_loaded(made, loaded):
    """Listing the names loads no provider; creating one loads neither another nor the HTTP library."""
    code = (
        "import sys; from pytest_openclaw.values.protocols import ProviderSetup; "
        "from pytest_openclaw.providers import BUILTIN; "
        f"made = [builtin(ProviderSetup(name=builtin.name)) for builtin in BUILTIN if builtin.name == {made!r}]; "
        "print(*sys.modules)"
    )

    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    ).stdout.split()

    assert {
        builtin.name for builtin in BUILTIN if f"pytest_openclaw.providers.{builtin.name}" in modules
    } == loaded
    assert "httpx2" not in modules
