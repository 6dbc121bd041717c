"""`python -m pytest_openclaw`, the same as the console script `pytest-openclaw`."""

from __future__ import annotations

import sys

from pytest_openclaw.cli import main

if __name__ == "__main__":  # a tool that imports every module runs nothing
    sys.exit(main())
