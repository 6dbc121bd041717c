"""How many examples a costly test makes up: a few before a merge, many in `tox -e search`."""

from __future__ import annotations

from hypothesis import settings

MANY = 200


def examples(few: int) -> settings:
    """Return the settings of a test of which `few` examples take as long as a test may."""
    return settings(max_examples=MANY if settings.get_current_profile_name() == "search" else few)
