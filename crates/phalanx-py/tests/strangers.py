"""What others wrote, a few lines each: stand-ins for packages that tests do without."""

import json
import threading

import numpy as np


class Discrete:
    """A space of so many actions."""

    def __init__(self, n):
        self.n = n


class Bits:
    """Every agent sees a bit and is paid for saying it."""

    possible_agents = ["a", "b"]
    length = 20

    def observation_space(self, agent):
        return None

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        self.rng, self.agents, self.count = np.random.default_rng(seed), list(self.possible_agents), 0
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self):
        self.bits = dict(zip(self.possible_agents, self.rng.integers(2, size=len(self.possible_agents)).tolist()))
        return {agent: np.array([self.bits[agent]], dtype=np.float32) for agent in self.possible_agents}

    def step(self, actions):
        self.count += 1
        earned = {agent: float(action == self.bits[agent]) for agent, action in actions.items()}
        no = dict.fromkeys(self.agents, False)
        over = dict.fromkeys(self.agents, self.count >= self.length)
        infos = {agent: {} for agent in self.agents}
        if self.count >= self.length:
            self.agents = []
        return self._seen(), earned, no, over, infos


class Leaking(Bits):
    """As Knights Archers Zombies: something is left over from the last episode, so that a used copy is not a fresh one."""

    total = 0

    def step(self, actions):
        self.total += 1
        seen, earned, *rest = super().step(actions)
        return {agent: numbers + (self.total > 30) for agent, numbers in seen.items()}, earned, *rest


class Turns:
    """As `simple_spread_v3.env()`: agents take turns (AEC)."""

    possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return None

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        pass

    def step(self, action):
        pass

    def last(self):
        return None

    def agent_iter(self):
        return iter(self.possible_agents)


class Pictures(Bits):
    """As Cooperative Pong: pictures of 403,200 numbers."""

    length = 3

    def _seen(self):
        super()._seen()
        return {agent: np.zeros((280, 480, 3), np.uint8) for agent in self.possible_agents}


class Wandb:
    """The calls of Weights & Biases that the book makes."""

    def __init__(self):
        self.logged, self.saved = [], []

    def init(self, **given):
        self.config = given["config"]
        return self

    def log(self, values, step):
        json.dumps(values)
        self.logged.append((step, values))

    def finish(self):
        self.is_over = True


class Mlflow:
    """Those of MLflow, whose active run is one of the thread."""

    def __init__(self):
        self.local, self.logged = threading.local(), []

    def start_run(self):
        self.local.active = True
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.local.active

    def log_metrics(self, values, step):
        assert self.local.active
        assert all(isinstance(value, int | float) for value in values.values())
        self.logged.append(step)
