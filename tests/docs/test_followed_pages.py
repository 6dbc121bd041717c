"""README and tutorial, followed as by a reader, print the output that they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import require_engine
from tests.docs.pages import read_page
from tests.docs.terminal import Terminal, follow

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("page", ["README.md", pytest.param("docs/tutorial.md", marks=pytest.mark.nightly)])
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    """Files are written and commands run in order, in a fresh folder."""
    require_engine()

    n_compared = follow(read_page((ROOT / page).read_text("utf-8")), Terminal(tmp_path))

    assert n_compared >= 2
