"""Access to docs/reference.py, which is in no package."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"
SUITES_PAGE = DOCS / "reference" / "suites.md"


def load_reference():
    """Return the module that generates the reference from the code."""
    spec = spec_from_file_location("reference", DOCS / "reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
