"""Plays a small world: answers each call of a scripted exchange, and says what is there afterwards.

Everything is a value in memory. Nothing here opens a file, starts a process or a connection.
"""

from pytest_openclaw.tools.world.playing import Playing, answered_calls, carried_out, final_state

__all__ = ["Playing", "answered_calls", "carried_out", "final_state"]
