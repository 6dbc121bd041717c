"""The folder in which all processes of a run on this machine meet; `once.py` shares work there."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_PREFIX = "pytest-openclaw-"


@dataclass(frozen=True, kw_only=True)
class SharedDir:
    """A folder of this run, made by the controller, whose `path` it gives to its workers.

    Its name is random and only its owner may enter. A context manager: leaving it removes the folder.
    """

    path: Path

    @classmethod
    def create(cls) -> SharedDir:
        """Make the folder, under the system's folder for temporary files."""
        return cls(path=Path(tempfile.mkdtemp(prefix=_PREFIX)))

    def remove(self) -> None:
        """Remove the folder with all that is in it; what is gone already is no error."""
        # An engine that ends a moment later still has its log open, which on Windows keeps the file there.
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> SharedDir:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()
