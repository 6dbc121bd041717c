"""The number of examples that a costly test generates: a few before a merge, many in `tox -e search`."""

from hypothesis import settings


def examples(few, many=200):
    """Return the settings of a test that has time for `few` examples before a merge."""
    return settings(max_examples=many if settings.get_current_profile_name() == "search" else few)
