"""Observations as boxes of one size, for learners that want all agents alike."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._checks import shown
from ._phalanx import ConfigError, Games

#: How observations are shown: as the library's own models read them, or as boxes.
Shown = Literal["native", "box"]


class Boxes:
    """Rows of equally many float32. Local states are written as indicators, `number of states` for each neighbour; views stay
    as they are. Behind the last neighbour of an agent are zeros."""

    def __init__(self, games: Games) -> None:
        self._sizes = games.sizes
        self.are_views = games.has_views
        widest = max(self._sizes)
        # No row of the last kind stands for a neighbour that is not there.
        self._indicators = None if self.are_views else np.eye(max(games.states), dtype=np.float32)
        self._missing = np.arange(widest) >= np.array(self._sizes)[:, None]
        #: Numbers per agent.
        self.width = widest if self._indicators is None else widest * len(self._indicators)

    def all(self, seen: NDArray[Any]) -> NDArray[np.float32]:
        """Of copies `[copy, agent, number]`."""
        if self._indicators is None:
            return seen.astype(np.float32, copy=False)
        rows: NDArray[np.float32] = self._indicators[seen]
        rows[:, self._missing] = 0.0
        return rows.reshape(*seen.shape[:2], self.width)

    def one(self, seen: NDArray[Any]) -> NDArray[np.float32]:
        """Of one agent."""
        row = np.zeros(self.width, dtype=np.float32)
        numbers = seen if self._indicators is None else self._indicators[seen].ravel()
        row[: len(numbers)] = numbers
        return row


def boxes(wanted: Any, games: Games) -> Boxes | None:
    """What `observations=` asks for."""
    if isinstance(wanted, str) and wanted in ("native", "box"):
        return Boxes(games) if wanted == "box" else None
    raise ConfigError(f'observations: {shown(wanted)}; allowed are "native" and "box"')
