"""What a run has spent, over all its processes on this machine, and whether that is its budget.

Every reply's cost is written down when the reply arrives, not when its test takes it, so that what was asked
ahead counts too. Processes of a machine meet in a file of the run's folder; what other machines have spent
is told by the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.private import open_private

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "spent.txt"
_HERE, _ELSEWHERE = "here", "elsewhere"


class SpentBudget:
    """The money of a run; without a budget it takes no notice of anything.

    Any process and any thread may have one of its own for the same folder.

    Args:
        shared_dir: the run's folder on this machine.
        budget_usd: at which nobody is asked any more; None is no limit.
    """

    def __init__(self, shared_dir: Path, budget_usd: float | None) -> None:
        self.budget_usd = budget_usd
        self._path = shared_dir / _NAME
        self._read_bytes = 0
        self._here_usd = 0.0
        self._elsewhere_usd = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the budget is spent."""
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    @property
    def spent_usd(self) -> float:
        """What the run has spent everywhere, as far as it is known here."""
        self._catch_up()
        return self._here_usd + self._elsewhere_usd

    @property
    def here_usd(self) -> float:
        """What the run has spent on this machine."""
        self._catch_up()
        return self._here_usd

    def pay(self, usd: float) -> None:
        """Write down what an attempt has cost."""
        if usd > 0:
            self._append(_HERE, usd)

    def hear(self, elsewhere_usd: float) -> None:
        """Take what all other machines together have spent so far."""
        self._append(_ELSEWHERE, elsewhere_usd)

    def _append(self, where: str, usd: float) -> None:
        if self.budget_usd is None:
            return
        # One write of a short line is never mixed with another process's.
        with open_private(self._path, "ab") as file:
            file.write(f"{where} {usd!r}\n".encode("ascii"))

    def _catch_up(self) -> None:
        """Read what was written since the last time."""
        try:
            if self._path.stat().st_size == self._read_bytes:
                return
        except FileNotFoundError:  # nobody has paid yet
            return
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.decode("ascii").splitlines():
            where, _, usd = line.partition(" ")
            if where == _HERE:
                self._here_usd += float(usd)
            else:  # told again and again, by whoever hears it first
                self._elsewhere_usd = max(self._elsewhere_usd, float(usd))
