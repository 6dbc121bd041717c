"""What the processes that ask on one machine know of each other: slots, and who is not asked any more.

They meet in the run's folder on this machine. A session without workers does nothing of this. Measured: to
look for a fault that nobody has told takes 5 µs a cell; to take a slot and give it back, 0.1 ms, and up to
`_POLL_S` more where another process had it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Literal

from filelock import Timeout

from pytest_openclaw.core.run_once import lock_file, path_of, read_json, write_json
from pytest_openclaw.types.replies import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from filelock import FileLock

Others = Literal["none", "own_parts", "any_cell"]
"""What the other processes ask: there are none; each its own parts of the endpoints; any of them any cell."""

_POLL_S = 0.02


class Neighbours:
    """The processes beside this one, as its event loop meets them.

    Args:
        shared_dir: the run's folder on this machine.
        share_slots: whether an endpoint's slots are held in common, because any process may be given any
            cell.
    """

    def __init__(self, shared_dir: Path, *, share_slots: bool) -> None:
        self._shared_dir = shared_dir
        self._share_slots = share_slots
        self._slots: dict[str, list[FileLock]] = {}
        self._doors: dict[str, asyncio.Lock] = {}
        self._paths: dict[str, Path] = {}

    @contextlib.asynccontextmanager
    async def slot(self, endpoint: str, limit: int) -> AsyncIterator[None]:
        """Hold one of the endpoint's slots, if they are held in common; a slot is free when its holder dies.

        Who came first is served first within this process alone.
        """
        if not self._share_slots:
            yield
            return
        if endpoint not in self._slots:
            paths = (path_of(self._shared_dir, f"slot {n} {endpoint}") for n in range(limit))
            self._slots[endpoint] = [lock_file(path.with_suffix(".lock")) for path in paths]
            self._doors[endpoint] = asyncio.Lock()
        async with self._doors[endpoint]:
            held = await _free_one(self._slots[endpoint])
        try:
            yield
        finally:
            held.release()

    def tell(self, who: str, fault: Fault) -> None:
        """Tell the others why an endpoint or a target is not asked any more."""
        told = {"failure_type": fault.failure_type, "status": fault.status, "message": fault.message}
        with contextlib.suppress(OSError):  # they find out by themselves; a full disk is told by the rows
            write_json(self._path(who), {**told, "reach": fault.reach})

    def told(self, who: str) -> Fault | None:
        """Return the fault that stopped an endpoint or a target, if any process has published one."""
        path = self._path(who)
        return Fault(**told) if path.exists() and (told := read_json(path)) else None

    def _path(self, who: str) -> Path:
        if who not in self._paths:
            self._paths[who] = path_of(self._shared_dir, f"down {who}")
        return self._paths[who]


async def _free_one(slots: list[FileLock]) -> FileLock:
    while True:
        for slot in slots:
            if not slot.is_locked:  # by this process, to which it would be given again
                with contextlib.suppress(Timeout):
                    slot.acquire(blocking=False)
                    return slot
        await asyncio.sleep(_POLL_S)
