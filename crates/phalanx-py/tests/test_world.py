"""Worlds of one's own: the line written in NumPy against the built-in one, and worlds that are none."""

import numpy as np
import phalanx


class Line(phalanx.World):
    """The paper's synthetic line: an agent's next state is drawn by its own and its right neighbour's action and state."""

    states = actions = 2
    start = np.array([0.5, 0.5])

    def __init__(self, n):
        self.n, self.graph = n, [(i, i + 1) for i in range(n - 1)]
        self.parents = [[i, i + 1] if i + 1 < n else [i] for i in range(n)]
        # Only the first agent's state pays, and every agent's action costs nothing.
        table = np.zeros((n, 2, 2))
        table[0, 1] = 1.0
        self.rewards = {"reward": table}
