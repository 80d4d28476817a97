"""What an environment gives at `reset` and `step`, infos included, changed in a few places."""

import numpy as np
from choices import Choices, edited
from phalanx import ConfigError
from phalanx.environment import Adapter

AGENTS = ["a", "b"]
#: How messages about an environment begin.
NAMES = (
    "make: ",
    "observations: ",
    "rewards",
    "channels[",
    "cell (of ",
    "infos (of ",
    "terminations",
    "truncations",
)
#: What is said where the form of an answer is wrong.
FIRST = ("its step must give", "its reset must give", "gives no ")
#: Steps of an episode.
STEPS = 3


class Discrete:
    n = 3


class Changed:
    """Valid answers, changed by choices in one of the first moments."""

    possible_agents = AGENTS

    def __init__(self, choices):
        # Choices are made when they are used, so that the first of them decide most.
        self._choices, self._moment = choices, 0
        self._when, self._edits, self._form = choices.below(STEPS + 1), 1 + choices.below(3), choices.below(3)

    def observation_space(self, agent):
        return None

    def action_space(self, agent):
        return Discrete

    def _seen(self):
        forms = (
            lambda: np.array([1.0, self._moment]),
            lambda: {"near": [1.0], "far": {"x": np.float32(self._moment)}},
            lambda: (np.zeros((2, 2), np.uint8), 0.5),
        )
        return {agent: forms[self._form]() for agent in AGENTS}

    def _answer(self, answer):
        if self._moment == self._when:
            parts = dict(enumerate(answer))
            for _ in range(self._edits):
                # Mostly inside one of the dicts: the form of the whole is the first check.
                if isinstance(parts, dict) and parts and not self._choices.one_in(10):
                    key = self._choices.pick(list(parts))
                    # A copy: strange values are used again.
                    parts = {**parts, key: edited(parts[key], self._choices)}
                else:
                    parts = edited(parts, self._choices)
            answer = tuple(parts.values()) if isinstance(parts, dict) else parts
        self._moment += 1
        return answer

    def reset(self, seed=None, options=None):
        return self._answer((self._seen(), {agent: {"cost": 0.5} for agent in AGENTS}))

    def step(self, actions):
        no, over = dict.fromkeys(AGENTS, False), dict.fromkeys(AGENTS, self._moment > STEPS)
        infos = {agent: {"cost": 0.5, "more": {"depth": 1}} for agent in AGENTS}
        return self._answer((self._seen(), dict.fromkeys(AGENTS, 1.0), no, over, infos))


def cell(seen):
    return len(str(seen)) % 4


def run(given):
    """How far the choices get: 0 the first check, 1 a later one, 2 accepted."""
    choices = Choices(given)
    environment = Changed(choices)
    channels = {"cost": "cost", "own": lambda agent, seen, action, reward, info: reward}
    try:
        adapter = Adapter(
            lambda: environment,
            cell if environment._form else None,
            4 if environment._form else 1,
            None,
            channels,
            None,
            True,
        )
        # The constructor has used up a moment.
        environment._moment = 0
        episode = adapter.begin(1)
        over = False
        while not over and environment._moment <= STEPS + 1:
            earned, over = episode.step(np.array([0, 2]))
            cells, numbers = episode.observe()
            assert earned.shape == (3 * len(AGENTS),) and np.isfinite(earned).all()
            assert len(numbers) == sum(adapter.widths) and np.isfinite(numbers).all() and len(cells) == len(AGENTS)
            assert isinstance(over, bool)
    except ConfigError as error:
        assert str(error).startswith(NAMES), f"the message names nothing that was given: {error}"
        assert str(error).isprintable() and len(str(error)) < 500, f"the message is no line: {error}"
        return 0 if any(words in str(error) for words in FIRST) else 1
    return 2
