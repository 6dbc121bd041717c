"""Finds the calls that one reply makes in writing."""

from pytest_openclaw.judging.written_calls import WrittenCallFinder


def find_written_calls(text, tools, expected=(), *, asked=None, thinking=""):
    return WrittenCallFinder(tools, expected, asked=asked).find(text, thinking)
