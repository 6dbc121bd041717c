"""Dispatches tool calls as OpenClaw 2026.9.6 does: the tool that is reached, and the model's result."""

from pytest_openclaw.tools.dispatch.calls import CHECK_STEPS, dispatch, is_forgotten
from pytest_openclaw.tools.dispatch.names import same_tool

__all__ = ["CHECK_STEPS", "dispatch", "is_forgotten", "same_tool"]
