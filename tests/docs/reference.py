"""Access to docs/reference.py, which is in no package."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"
SUITES_PAGE = DOCS / "reference" / "suites.md"


def load_file(path):
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_reference():
    return load_file(DOCS / "reference.py")
