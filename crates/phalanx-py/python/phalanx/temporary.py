"""Folders of runs that nobody wants to keep."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class Temporary:
    """A folder of the system's that is deleted with this object, or when the interpreter ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="phalanx-"))
        self._end = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def keep(self) -> None:
        """It stays: somebody may want to go on with what is in it."""
        self._end.detach()
