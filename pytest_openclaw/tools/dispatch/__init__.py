"""What OpenClaw 2026.9.6 makes of a tool call: which tool it reaches, and what the model receives."""

from pytest_openclaw.tools.dispatch.calls import CHECK_STEPS, dispatch, is_forgotten, same_tool

__all__ = ["CHECK_STEPS", "dispatch", "is_forgotten", "same_tool"]
