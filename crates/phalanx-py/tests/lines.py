"""The paper's synthetic line, written in NumPy."""

import numpy as np
import phalanx


class Line(phalanx.World):
    """Agent 0 copies the state of agent 1; the last agent's next state is its action; any other reaches 1 if it acts, surely
    if its right neighbour is in 1, and with probability 0.8 if not."""

    states = actions = 2
    start = (0.5, 0.5)

    def __init__(self, n):
        self.n, self.graph = n, [(i, i + 1) for i in range(n - 1)]
        self.parents = [[i, i + 1] if i + 1 < n else [i] for i in range(n)]
        worth = np.where(np.arange(n) == 0, 1.0, 0.1)
        self.rewards = {"reward": worth[:, None, None] * np.array([[0.0, 0.0], [1.0, 1.0]])}

    def chance(self, states, actions):
        """Of state 1, for every agent."""
        right = np.append(states[1:], 0)
        chance = actions * np.where(right == 1, 1.0, 0.8)
        chance[-1] = actions[-1]
        chance[0] = right[0]
        return chance

    def step(self, states, actions, uniform):
        return uniform >= 1 - self.chance(states, actions)


class KnownLine(Line):
    """The same with its law, for exact computations."""

    def transition(self, agent, states, actions):
        if agent == self.n - 1:
            chance = float(actions[0])
        elif agent == 0:
            chance = float(states[1])
        else:
            chance = actions[0] * (1.0 if states[1] == 1 else 0.8)
        return [1 - chance, chance]
