"""The types of plain JSON."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
