"""Spaces of Gymnasium for many copies. Imported by :class:`phalanx.VectorEnv` only where somebody asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ._phalanx import Games
from .boxes import Boxes

Space = spaces.Space[Any]
#: A copy whose episode ended begins the next one in the same step.
AUTORESET = AutoresetMode.SAME_STEP


def observations(games: Games, boxes: Boxes | None) -> Space:
    """What one copy shows, ``[agent, number]``."""
    n, widest = len(games.names), max(games.sizes)
    if boxes is not None and not boxes.are_views:
        return spaces.Box(0.0, 1.0, (n, boxes.width), np.float32)
    if games.has_views:
        return spaces.Box(-np.inf, np.inf, (n, widest), np.float32)
    counts = np.ones((n, widest), dtype=np.int64)
    for i, group in enumerate(games.groups):
        counts[i, : len(group)] = [games.states[m] for m in group]
    return spaces.MultiDiscrete(counts, dtype=np.uint8 if counts.max() < 256 else np.int64)


def actions(games: Games, continuous: bool) -> Space:
    """What the agents of one copy do, ``[agent]``."""
    if continuous:
        return spaces.Box(-1.0, 1.0, (len(games.names),), np.float32)
    return spaces.MultiDiscrete(games.action_counts)


def batched(space: Space, copies: int) -> Space:
    """The same for all copies."""
    return batch_space(space, copies)
