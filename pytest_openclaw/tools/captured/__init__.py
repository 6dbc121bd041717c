"""Reads what OpenClaw sends to a model, removes personal data, and collects it as a catalogue."""

from pytest_openclaw.tools.captured.gathering import CONFIGURED, gather, sizes_of
from pytest_openclaw.tools.captured.masks import Masks
from pytest_openclaw.tools.captured.wire_requests import Sent, read_request

__all__ = ["CONFIGURED", "Masks", "Sent", "gather", "read_request", "sizes_of"]
