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


class Box:
    """A space of numbers."""

    def __init__(self, shape):
        self.shape = shape


class Gym:
    """As rware and lbforaging: an environment of Gymnasium whose actions and rewards are lists."""

    n_agents = 2

    def reset(self, seed=None, options=None):
        self.rng = np.random.default_rng(seed)
        return tuple(self.rng.random(3) for _ in range(self.n_agents)), {}

    def step(self, actions):
        seen = tuple(self.rng.random(3) for _ in range(self.n_agents))
        return seen, [float(action) for action in actions], False, False, {}


class Joined:
    """The same as a parallel environment."""

    possible_agents = agents = ["0", "1"]

    def __init__(self):
        self.gym = Gym()

    def observation_space(self, agent):
        return Box((3,))

    def action_space(self, agent):
        return Discrete(5)

    def _named(self, values):
        return dict(zip(self.agents, values, strict=True))

    def reset(self, seed=None, options=None):
        seen, info = self.gym.reset(seed=seed)
        return self._named(seen), self._named([info] * 2)

    def step(self, actions):
        seen, earned, ended, cut, info = self.gym.step([actions[agent] for agent in self.agents])
        return (
            self._named(seen),
            self._named(earned),
            self._named([ended] * 2),
            self._named([cut] * 2),
            self._named([info] * 2),
        )


class Wide(Bits):
    """As magent2's battle: many numbers per agent, and agents that fall while others go on."""

    possible_agents = ["red_0", "red_1", "blue_0"]

    def _seen(self):
        return {
            agent: np.tile(numbers, (13, 13, 5)).astype(np.float32) for agent, numbers in super()._seen().items()
        }

    def step(self, actions):
        seen, earned, ended, cut, infos = super().step(actions)
        if self.count == 2:
            ended = {agent: agent == "red_1" for agent in ended}
        self.agents = [agent for agent in self.agents if not ended[agent]]
        return tuple({agent: part[agent] for agent in actions} for part in (seen, earned, ended, cut, infos))


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
