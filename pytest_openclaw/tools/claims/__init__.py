"""Whether a text says that something was done."""

from pytest_openclaw.tools.claims.reading import claims_done

__all__ = ["claims_done"]
