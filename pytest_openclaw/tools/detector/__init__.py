"""The seed's text detector, which finds the tools that a reply invokes in its text."""

from pytest_openclaw.tools.detector.detect import detect_tools

__all__ = ["detect_tools"]
