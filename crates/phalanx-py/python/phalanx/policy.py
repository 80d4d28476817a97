"""A trained policy, to be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import array, flag, folder, shown, whole
from ._phalanx import ConfigError, Fixed
from .own import Own

if TYPE_CHECKING:
    from .environment import Adapter
    from .utility import Utility
    from .world import World

_Agent = TypeVar("_Agent")
#: What a saved policy consists of.
_FILES = ("config.toml", "policy.safetensors")


class Policy:
    """Every agent's policy. It reads what an environment of this package (`phalanx.env`) shows an agent, or, for a world
    that was made by `phalanx.from_pettingzoo`, what that environment shows.

    >>> import numpy as np, phalanx
    >>> run = phalanx.train("synthetic", iterations=5, temporary=True)
    >>> observations = {"agent_0": np.array([0, 1]), "agent_1": np.array([0, 1, 1])}
    >>> sorted(run.policy.act(observations, seed=0))
    ['agent_0', 'agent_1']
    >>> run.policy.probabilities(0, np.array([0, 1])).shape
    (2,)
    >>> run.policy.probabilities(0, np.array([[0, 1], [1, 1], [0, 0]])).shape
    (3, 2)
    """

    def __init__(self, fixed: Fixed, own: Own) -> None:
        self._fixed = fixed
        self._own = own
        self._adapter: Adapter | None = own.adapter
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
        """The law of one agent's action, given what it observes. Of many observations, `[..., numbers]`, the laws
        `[..., actions]`. In somebody else's environment neighbours' observations enter, too: give a dict with those of all
        agents, by name."""
        if self._adapter is not None:
            seen = self._of_agents(self._adapter, observation, "observation")
            if agent not in self._adapter.agents:
                raise ConfigError(f"agent: {shown(agent)} is unknown; there are {self._adapter.agents[:4]}")
            return self._law_in(self._adapter.agents.index(agent), *self._adapter.read(seen))
        number = self._number(agent)
        rows = array(observation, "observation")
        if rows.ndim == 0:
            rows = rows.reshape(1)
        width = self._width(number)
        if width is not None and rows.shape[-1] != width:
            what = "numbers" if self._is_joint else "agents"
            raise ConfigError(f"observation: agent {number} sees {width} {what}, not {rows.shape[-1]}")
        if rows.shape[-1] == 0:
            raise ConfigError(f"observation: shape {rows.shape} has no numbers")
        laws = self._fixed.laws(number, self._read(rows.reshape(-1, rows.shape[-1])), None)
        return laws.reshape(*rows.shape[:-1], laws.shape[-1])

    @overload
    def act(
        self, observations: Mapping[_Agent, Any], *, seed: int | None = None, greedy: bool = False
    ) -> dict[_Agent, Any]: ...

    @overload
    def act(
        self, observations: ArrayLike, *, seed: int | None = None, greedy: bool = False
    ) -> NDArray[np.int64]: ...

    def act(
        self, observations: Any, *, seed: int | None = None, greedy: bool = False
    ) -> dict[Any, Any] | NDArray[np.int64]:
        """Actions, given what agents observe: a dict by agent, or an array with a row per agent and, before it, any number of
        copies. They are drawn from the policy, from the beginning of `seed`'s numbers if given; `greedy` takes the
        likeliest.
        """
        greedy = flag(greedy, "greedy")
        if seed is not None:
            self._rng = np.random.default_rng(whole(seed, "seed"))
        if isinstance(observations, Mapping):
            if self._adapter is not None:
                return self._act_in(self._adapter, observations, greedy)
            seen = [np.ravel(array(observation, "observations")) for observation in observations.values()]
            numbers = [self._number(agent) for agent in observations]
            for number, row in zip(numbers, seen, strict=True):
                width = self._width(number)
                if width is not None and len(row) != width:
                    what = "numbers" if self._is_joint else "agents"
                    raise ConfigError(f"observations: agent {number} sees {width} {what}, not {len(row)}")
            kinds = {row.dtype.kind for row in seen} - set("fiub")
            if kinds:
                raise ConfigError(f"observations: {max(str(row.dtype) for row in seen)} cannot be read as numbers")
            table = np.zeros((1, len(seen), max(map(len, seen), default=0)), dtype=np.result_type(*seen, np.int8))
            for place, row in enumerate(seen):
                table[0, place, : len(row)] = row
            return dict(zip(observations, self._choose(numbers, table, greedy)[0].tolist(), strict=True))
        table = array(observations, "observations")
        if self._adapter is not None:
            raise ConfigError("observations: a dict by agent is needed, as the environment shows it")
        if table.ndim < 2 or table.shape[-2] != self._agents or table.shape[-1] == 0:
            raise ConfigError(
                f"observations: shape {table.shape}; a dict by agent is needed, or an array [..., "
                f"{self._agents} agents, numbers]"
            )
        rows = table.reshape(-1, *table.shape[-2:])
        return self._choose(list(range(self._agents)), rows, greedy).reshape(table.shape[:-1])

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the policy alone into a folder: its parameters, and the settings that say how to read them."""
        self._fixed.save(folder(path, "path").absolute())

    @staticmethod
    def load(
        path: str | PathLike[str], *, world: World | None = None, utilities: Iterable[Utility] = ()
    ) -> Policy:
        """Opens a policy that `save` wrote, or that of a run's folder. `world` and `utilities`: your own, if it
        was trained with any.

        >>> import os, tempfile, phalanx
        >>> run = phalanx.train("synthetic", iterations=3, temporary=True)
        >>> place = os.path.join(tempfile.mkdtemp(), "policy")
        >>> run.policy.save(place)
        >>> phalanx.Policy.load(place)
        <Policy of 10 agents>
        """
        where = folder(path, "path").absolute()
        missing = [name for name in _FILES if not (where / name).is_file()]
        if missing:
            raise ConfigError(f"path: {str(path)!r} is no policy; it has no {missing[0]}")
        own = Own(world, utilities, check=False)
        own.check_names(where, "phalanx.Policy.load")
        return Policy(Fixed.of_run(where, own.registry), own)

    def _width(self, agent: int) -> int | None:
        """How many numbers an agent reads; none if its policy makes do with what there is."""
        return self._widths[agent] if self._is_joint else len(self.neighbours[agent])

    def _number(self, agent: int | str) -> int:
        """An agent's number; names of environments end with it."""
        if isinstance(agent, str):
            prefix, _, number = agent.rpartition("_")
            if prefix != self._prefix or not number.isdecimal():
                raise ConfigError(f"agent: {shown(agent)} is unknown; names are `{self._prefix}_0` and so on")
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
        # A number that no state can be stands for all that NumPy would make something else of.
        if seen.dtype.kind == "f" and not (np.array_equal(seen, np.floor(seen)) and (abs(seen) < 2.0**53).all()):
            raise ConfigError("observations: states are whole numbers")
        return np.ascontiguousarray(seen, dtype=np.int64)

    def _of_agents(self, adapter: Adapter, observations: Any, name: str) -> Mapping[Any, Any]:
        if not isinstance(observations, Mapping):
            raise ConfigError(
                f"{name}: `{type(observations).__name__}`; neighbours' observations enter, too: give a dict with those of "
                "all agents"
            )
        unknown = [agent for agent in observations if agent not in adapter.agents]
        if unknown:
            raise ConfigError(f"{name}: {shown(unknown[0])} is no agent")
        return observations

    def _law_in(self, agent: int, cells: NDArray[np.int64], numbers: NDArray[np.float32]) -> NDArray[np.float64]:
        law: NDArray[np.float64] = self._fixed.laws(agent, cells[None, self.neighbours[agent]], numbers)[0]
        return law

    def _laws_of_rows(self, seen: NDArray[Any]) -> NDArray[np.float64]:
        """Laws `[copy, agent, action]`, given observations `[copy, agent, number]` with anything behind."""
        rows = (seen[:, i, : self._width(i)] for i in range(self._agents))
        laws = [self._fixed.laws(i, self._read(row), None) for i, row in enumerate(rows)]
        found = np.zeros((*seen.shape[:2], max(law.shape[1] for law in laws)))
        for i, law in enumerate(laws):
            found[:, i, : law.shape[1]] = law
        return found

    def _laws(self, observations: Mapping[Any, Any]) -> dict[Any, NDArray[np.float64]]:
        """Everybody's law in somebody else's environment."""
        adapter = self._adapter
        if adapter is None:
            raise ConfigError("policy: is of another world")
        read = adapter.read(observations)
        return {agent: self._law_in(i, *read) for i, agent in enumerate(adapter.agents)}

    def _act_in(self, adapter: Adapter, observations: Mapping[Any, Any], greedy: bool) -> dict[Any, Any]:
        """In somebody else's environment, with its own observations and actions."""
        cells, numbers = adapter.read(self._of_agents(adapter, observations, "observations"))
        actions = {}
        for i, agent in enumerate(adapter.agents):
            if agent in observations:
                law = self._law_in(i, cells, numbers)
                total = np.searchsorted(np.cumsum(law), self._rng.random(), side="right")
                choice = int(np.argmax(law)) if greedy else min(int(total), len(law) - 1)
                actions[agent] = adapter.action(agent, choice)
        return actions

    def __reduce__(self) -> Any:
        if not self._own.is_empty:
            raise TypeError(
                "a policy with your own world or utility cannot be pickled; "
                "use policy.save(path) and phalanx.Policy.load(path, world=...)"
            )
        with TemporaryDirectory() as place:
            self.save(place)
            return _restored, tuple((Path(place) / name).read_bytes() for name in _FILES)

    def __repr__(self) -> str:
        return f"<Policy of {self._agents} agents>"


def _restored(*contents: bytes) -> Policy:
    """From the files of a saved one."""
    with TemporaryDirectory() as place:
        for name, content in zip(_FILES, contents, strict=True):
            (Path(place) / name).write_bytes(content)
        return Policy.load(place)
