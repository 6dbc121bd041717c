"""README and tutorials, followed as by a reader, print the output that they show."""

from pathlib import Path

import pytest

from tests.conftest import require_engine
from tests.docs.pages import read_page
from tests.docs.terminal import Terminal, follow

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    "pages",
    [["README.md"], pytest.param(["docs/tutorial.md", "docs/tutorial-gate.md"], marks=pytest.mark.nightly)],
)
def test_pages_print_what_they_show(pages, tmp_path):
    """Files are written and commands run in order, in a fresh folder."""
    require_engine()

    for page in pages:
        assert follow(read_page((ROOT / page).read_text("utf-8")), Terminal(tmp_path)) >= 2
