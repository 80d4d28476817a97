"""A trained policy, to be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._checks import whole
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
        self._agents = fixed.agents
        self._is_joint = fixed.is_joint
        self._prefix = fixed.prefix
        self._widths = fixed.widths
        self._rng = np.random.default_rng()
        #: Whose states each agent reads, ascending; itself among them.
        self.neighbours: list[list[int]] = fixed.groups

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
        return self._fixed.law(self._number(agent), self._read(np.ravel(np.asarray(observation))), None)

    def act(
        self, observations: Any, *, seed: int | None = None, greedy: bool = False
    ) -> dict[Any, Any] | NDArray[np.int64]:
        """Actions, given what agents observe: a dict by agent, or an array with a row per agent and, before it, any number of
        copies. They are drawn from the policy, from the beginning of `seed`'s numbers if given; `greedy` takes the
        likeliest.
        """
        if seed is not None:
            self._rng = np.random.default_rng(whole(seed, "seed"))
        if isinstance(observations, Mapping):
            if self._adapter is not None:
                return self._act_in(self._adapter, observations, greedy)
            seen = [np.ravel(np.asarray(observation)) for observation in observations.values()]
            numbers = [self._number(agent) for agent in observations]
            for number, row in zip(numbers, seen, strict=True):
                width = self._widths[number]
                if not self._is_joint and len(row) != len(self.neighbours[number]):
                    raise ConfigError(
                        f"observations: agent {number} sees {len(self.neighbours[number])} agents, not {len(row)}"
                    )
                if self._is_joint and width is not None and len(row) != width:
                    raise ConfigError(f"observations: agent {number} sees {width} numbers, not {len(row)}")
            table = np.zeros((1, len(seen), max(map(len, seen), default=0)), dtype=np.result_type(*seen, np.int8))
            for place, row in enumerate(seen):
                table[0, place, : len(row)] = row
            return dict(zip(observations, self._choose(numbers, table, greedy)[0].tolist(), strict=True))
        table = np.asarray(observations)
        if table.ndim < 2 or table.shape[-2] != self._agents or table.shape[-1] == 0:
            raise ConfigError(
                f"observations: shape {table.shape}; a dict by agent is needed, or an array [..., "
                f"{self._agents} agents, numbers]"
            )
        rows = table.reshape(-1, *table.shape[-2:])
        return self._choose(list(range(self._agents)), rows, greedy).reshape(table.shape[:-1])

    def _number(self, agent: int | str) -> int:
        """An agent's number; names of environments end with it."""
        if isinstance(agent, str):
            prefix, _, number = agent.rpartition("_")
            if prefix != self._prefix or not number.isdecimal():
                raise ConfigError(f"agent: {agent!r} is unknown; names are `{self._prefix}_0` and so on")
            agent = int(number)
        return whole(agent, "agent", 0, self._agents - 1)

    def _choose(self, agents: list[int], table: NDArray[Any], greedy: bool) -> NDArray[np.int64]:
        uniform = None if greedy else self._rng.random(table.shape[:2])
        return self._fixed.act(agents, self._read(table), uniform)

    def _read(self, seen: NDArray[Any]) -> NDArray[Any]:
        """Numbers as the library reads them."""
        if seen.dtype.kind not in "fiub":
            raise ConfigError(f"observations: {seen.dtype} cannot be read as numbers")
        if self._is_joint:
            return np.ascontiguousarray(seen, dtype=np.float32)
        if seen.dtype.kind == "f" and not np.array_equal(seen, np.floor(seen)):
            raise ConfigError("observations: states are whole numbers")
        return np.ascontiguousarray(seen, dtype=np.int64)

    def _act_in(self, adapter: Adapter, observations: Mapping[Any, Any], greedy: bool) -> dict[Any, Any]:
        """In somebody else's environment, with its own observations and actions."""
        unknown = [agent for agent in observations if agent not in adapter.agents]
        if unknown:
            raise ConfigError(f"observations: {unknown[0]!r} is no agent")
        cells, numbers = adapter.read(observations)
        actions = {}
        for i, agent in enumerate(adapter.agents):
            if agent in observations:
                law = self._fixed.law(i, cells[self.neighbours[i]], numbers)
                total = np.searchsorted(np.cumsum(law), self._rng.random(), side="right")
                choice = int(np.argmax(law)) if greedy else min(int(total), len(law) - 1)
                actions[agent] = adapter.action(agent, choice)
        return actions

    def __repr__(self) -> str:
        return f"<Policy of {self._agents} agents>"
