"""The names under which xdist's workers and their controller exchange messages."""

from __future__ import annotations

PAYLOAD = "openclaw"
STOP = "openclaw_stop"
"""What a controller tells its workers when the session is to stop; xdist knows nothing of it."""
DECIDED = "openclaw_decided"
"""What it tells them when it is decided whether a target is asked again; see `Repeats.hear`."""
SPENT = "openclaw_spent"
"""What it tells workers on other machines when money was spent elsewhere; see `SpentBudget.hear`."""
DISTRIBUTED = "openclaw-distributed"
