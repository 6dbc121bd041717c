"""The seed's text detector: which tools a reply invokes in words."""

from pytest_openclaw.tools.detector.detect import detect_tools

__all__ = ["detect_tools"]
