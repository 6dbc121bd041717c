"""Altair and the script that draws its charts: the extra `report`, imported when a page is made."""

from __future__ import annotations

from functools import cache
from typing import Any

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.installation import install_command


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, which leaves the global `vegaEmbed`.

    Raises:
        OpenClawError: the extra is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise _missing(error) from None
    version = "v" + ".".join(altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    # Line ends as a browser reads them before it takes the hash.
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in script.lower() or "<!--" in script:
        raise OpenClawError(
            "the script that comes with vl-convert-python would end its own element; install another version"
        )
    return script


def altair() -> Any:
    """Return the module.

    Raises:
        OpenClawError: the extra is not installed.
    """
    try:
        import altair
    except ImportError as error:
        raise _missing(error) from None
    return altair


def _missing(error: ImportError) -> OpenClawError:
    command = install_command("report")
    return OpenClawError(f"the page's charts need {error.name}, which is not installed: {command}")
