"""Plays a small world: answers each call of a scripted exchange, and returns the state afterwards.

Everything is a value in memory. This folder opens no file, process or connection.
"""

from pytest_openclaw.tools.world.playing import Playing, answered_calls, final_state, yield_note

__all__ = ["Playing", "answered_calls", "final_state", "yield_note"]
