"""A trained policy, to be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._phalanx import ConfigError, Fixed

if TYPE_CHECKING:
    from .environment import Adapter


class Policy:
    """Every agent's policy. It reads what an environment of this package (`phalanx.env`) shows an agent, or, for a world
    that was made by `phalanx.from_pettingzoo`, what that environment shows.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", iterations=5, out=getfixture("tmp_path") / "run")
    >>> observations = {"agent_0": np.array([0, 1]), "agent_1": np.array([0, 1, 1])}
    >>> sorted(run.policy.act(observations, seed=0))
    ['agent_0', 'agent_1']
    >>> run.policy.probabilities(0, np.array([0, 1])).shape
    (2,)
    """

    def __init__(self, fixed: Fixed, adapter: Adapter | None) -> None:
        self._fixed = fixed
        self._adapter = adapter
        self._rng = np.random.default_rng()

    @property
    def neighbours(self) -> list[list[int]]:
        """Whose states each agent reads, ascending; itself among them."""
        return self._fixed.groups

    @property
    def parameters(self) -> list[NDArray[np.float64]]:
        """θ of every agent, flat."""
        return self._fixed.theta()

    def probabilities(self, agent: int | str, observation: Any) -> NDArray[np.float64]:
        """The law of one agent's action, given what it observes."""
        if self._adapter is not None:
            raise ConfigError(
                "observation: neighbours' observations enter, too; use act(observations) with those of all agents"
            )
        return self._law(_number(agent, self._fixed.agents), observation)

    def act(
        self, observations: Any, *, seed: int | None = None, greedy: bool = False
    ) -> dict[Any, int] | NDArray[np.int64]:
        """Actions, given what agents observe: a dict by agent, or an array with a row an agent and, before it, any number of
        copies. They are drawn from the policy, from the beginning of `seed`'s numbers if given; `greedy` takes the
        likeliest.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        if isinstance(observations, Mapping):
            if self._adapter is not None:
                cells, numbers = self._adapter.read(observations)
                laws = {
                    agent: self._fixed.law_of_moment(i, cells[self._fixed.groups[i]], numbers)
                    for i, agent in enumerate(self._adapter.agents)
                    if agent in observations
                }
                chosen = {agent: self._draw(law, greedy) for agent, law in laws.items()}
                return {agent: self._adapter.action(agent, choice) for agent, choice in chosen.items()}
            return {
                agent: self._draw(self._law(_number(agent, self._fixed.agents), seen), greedy)
                for agent, seen in observations.items()
            }
        table = np.asarray(observations)
        if table.ndim < 2 or table.shape[-2] != self._fixed.agents:
            raise ConfigError(
                f"observations: shape {table.shape}; a dict by agent is needed, or an array [..., "
                f"{self._fixed.agents} agents, numbers]"
            )
        rows = table.reshape(-1, *table.shape[-2:])
        groups = self._fixed.groups
        actions = np.empty(rows.shape[:2], dtype=np.int64)
        for copy, row in enumerate(rows):
            for i, seen in enumerate(row):
                seen = seen if self._fixed.is_joint else seen[: len(groups[i])]
                actions[copy, i] = self._draw(self._law(i, seen), greedy)
        return actions.reshape(table.shape[:-1])

    def _law(self, agent: int, observation: Any) -> NDArray[np.float64]:
        seen = np.ravel(np.asarray(observation))
        if self._fixed.is_joint:
            return self._fixed.law_of_view(agent, np.ascontiguousarray(seen, dtype=np.float32))
        if seen.dtype.kind not in "iub" and not np.array_equal(seen, np.floor(seen)):
            raise ConfigError("observations: states are whole numbers")
        return self._fixed.law_of_states(agent, np.ascontiguousarray(seen, dtype=np.int64))

    def _draw(self, law: NDArray[np.float64], greedy: bool) -> int:
        if greedy:
            return int(np.argmax(law))
        return min(int(np.searchsorted(np.cumsum(law), self._rng.random(), side="right")), len(law) - 1)

    def __repr__(self) -> str:
        return f"<Policy of {self._fixed.agents} agents>"


def _number(agent: int | str, agents: int) -> int:
    """An agent's number; names of environments end with it."""
    if isinstance(agent, str):
        tail = agent.rsplit("_", 1)[-1]
        if not tail.isdecimal():
            raise ConfigError(f"agent: {agent!r} is unknown; names end with a number, as in `agent_3`")
        number = int(tail)
    else:
        number = int(agent)
    if not 0 <= number < agents:
        raise ConfigError(f"agent: {agent!r}; agents are 0 to {agents - 1}")
    return number
