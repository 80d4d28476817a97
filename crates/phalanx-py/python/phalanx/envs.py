"""Worlds to play in: environments of PettingZoo, and many copies at once as arrays.

:func:`env` makes an environment of PettingZoo (``pip install pettingzoo``), :func:`vector_env` plays many
copies in one call and needs NumPy only. Both take the name of a world (``"line"``, ``"wireless"``, ``"pistonball"``,
``"platoon"``, ``"epidemic"``, ``"junctions"``), a preset, a TOML file or a dict, and the keys of ``[world]`` as arguments.

Agents see their κ-hop neighbourhood, themselves among it, in ascending order: local states, or in pistonball, platoon and
junctions what the library's own neural networks read.
"""

from __future__ import annotations

import math
import operator
import os
import secrets
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ._checks import array as as_array
from ._checks import shown
from ._phalanx import ConfigError, Configuration, Games
from ._remade import Remade
from .boxes import Shown, boxes
from .own import Own
from .world import World

if TYPE_CHECKING:
    from ._parallel import WorldEnv

__all__ = ["VectorEnv", "env", "parallel_env", "vector_env"]

Source: TypeAlias = "str | os.PathLike[str] | dict[str, Any] | World"
Array: TypeAlias = "npt.NDArray[Any]"

#: Worlds whose preset has another name, and those that have another one where `n` is given.
_PRESETS = {"line": "synthetic", "platoon": "platoon-catchup", "junctions": "junctions-grid4x4"}
_PRESETS_BY_N = {"epidemic": "epidemic-grid"}
#: Seconds between decisions of junctions, where nobody says.
_DECISION = 10
#: Seeds have 64 bits in all worlds but pistonball, where NumPy takes any.
_LARGEST_SEED = 2**64 - 1
#: Steps of an episode, at most.
MOST_CYCLES = 2**32 - 1


def env(
    source: Source,
    *,
    kappa: int | None = None,
    max_cycles: int | None = None,
    continuous: bool = False,
    render_mode: str | None = None,
    network: dict[str, Any] | None = None,
    observations: Shown = "native",
    **world: Any,
) -> WorldEnv:
    """A world as a ``ParallelEnv`` of PettingZoo.

    Arguments:
        source: a world (``"line"``, ``"wireless"``, ``"pistonball"``, ``"platoon"``, ``"epidemic"``, ``"junctions"``), the name of a preset, a TOML
            file, a dict like one, or your own :class:`phalanx.World`. A world's name stands for its recommended preset (``"epidemic"`` with ``n`` but no
            ``network`` for ``"epidemic-grid"``, as the other one brings its people along).
        kappa: how many hops an agent sees; by default as configured.
        max_cycles: steps after which an episode is cut; by default the configured ``horizon``, in pistonball 125, in junctions an hour.
        continuous: actions from -1 to 1 in pistonball with ``game="pettingzoo"``.
        render_mode: ``None``, ``"rgb_array"``, or ``"human"`` for a window of matplotlib.
        network: ``[network]``, links other than the world's own.
        observations: ``"native"``, or ``"box"``: a ``Box`` of the same size for all agents, states as indicators, with zeros
            behind. Policies of this package read native ones.
        world: keys of ``[world]``.

    >>> import phalanx
    >>> game = phalanx.env("pistonball", n=5, game="pettingzoo", kappa=1)
    >>> observations, infos = game.reset(seed=7)
    >>> game.agents
    ['piston_0', 'piston_1', 'piston_2', 'piston_3', 'piston_4']
    >>> observations["piston_0"].shape  # 4 moments of 2 heights and 5 numbers about the ball
    (28,)
    >>> observations, rewards, terminations, truncations, infos = game.step({agent: 2 for agent in game.agents})
    >>> round(rewards["piston_0"], 3)  # the ball went three pixels of its way to the right
    -2.827

    Signals of a road network, for which ``roadnet`` and ``flow`` name CityFlow's files; without them a town is made up:

    >>> town = phalanx.env("junctions", town={"grid": [2, 3]}, decision=10, yellow=5, render_mode="rgb_array")
    >>> observations, infos = town.reset(seed=7)
    >>> observations, rewards, terminations, truncations, infos = town.step({agent: 2 for agent in town.agents})
    >>> infos["junction_0"]["waiting"], infos["junction_0"]["starvation"]  # among other channels
    (0.0, 0.0)
    >>> sorted(town.measures())
    ['finished', 'longest_red', 'travel_time', 'travel_time_tables', 'waiting_outside']
    >>> town.render().shape, town.max_cycles
    ((673, 884, 3), 360)
    """
    try:
        from ._parallel import WorldEnv
    except ImportError as error:
        message = "phalanx.env needs PettingZoo: pip install pettingzoo (phalanx.vector_env does not)"
        raise ImportError(message) from error
    return WorldEnv(
        source,
        kappa=kappa,
        max_cycles=max_cycles,
        continuous=continuous,
        render_mode=render_mode,
        network=network,
        observations=observations,
        **world,
    )


#: The name that environments of PettingZoo have for it.
parallel_env = env


def vector_env(
    source: Source,
    copies: int = 1,
    *,
    threads: int = 1,
    kappa: int | None = None,
    max_cycles: int | None = None,
    continuous: bool = False,
    network: dict[str, Any] | None = None,
    observations: Shown = "native",
    **world: Any,
) -> VectorEnv:
    """Many copies of a world, all moved on in one call. Arguments are those of :func:`env`, and

    Arguments:
        copies: how many.
        threads: threads that share the copies. Results do not depend on it.

    >>> import numpy as np, phalanx
    >>> games = phalanx.vector_env("pistonball", copies=64, n=10, game="pettingzoo", kappa=1)
    >>> observations, infos = games.reset(seed=7)
    >>> observations.shape, observations.dtype
    ((64, 10, 32), dtype('float32'))
    >>> actions = np.ones((64, 10), dtype=np.uint8)
    >>> observations, rewards, terminations, truncations, infos = games.step(actions)
    >>> rewards.shape, terminations.shape, sorted(infos)
    ((64, 10), (64,), ['height'])
    """
    return VectorEnv(
        source,
        copies,
        threads=threads,
        kappa=kappa,
        max_cycles=max_cycles,
        continuous=continuous,
        network=network,
        observations=observations,
        **world,
    )


class VectorEnv(Remade):
    """Copies of a world as arrays; made by :func:`vector_env`. Names, spaces and ends of episodes are those of a
    ``VectorEnv`` of Gymnasium that begins again in the same step; rewards are ``[copy, agent]``.

    Copies by ``pickle`` are at no episode. Copy ``k`` of ``reset(seed=s)`` plays what ``phalanx.env(…)`` plays from ``reset(seed=s + k)`` on, episode after
    episode. All returned arrays are new ones: nobody writes to them later.
    """

    #: How many copies there are.
    copies: int
    #: Names of the agents.
    possible_agents: list[str]
    #: Whether actions are numbers from -1 to 1.
    continuous: bool
    #: Numbers that each agent sees; ``observations[c, i, sizes[i]:]`` are 0.
    sizes: list[int]

    def __init__(
        self,
        source: Source,
        copies: int,
        *,
        threads: int = 1,
        kappa: int | None = None,
        max_cycles: int | None = None,
        continuous: bool = False,
        network: dict[str, Any] | None = None,
        observations: Shown = "native",
        **world: Any,
    ) -> None:
        self.copies = whole_number("copies", copies)
        threads = whole_number("threads", threads)
        self._games = make_games(source, self.copies, threads, kappa, max_cycles, continuous, network, world)
        self._starts = Starts(self._games, self.copies)
        self.possible_agents = self._games.names
        self.continuous = continuous
        self.sizes = self._games.sizes
        self._channels = self._games.channels
        self._reward = self._channels.index("reward") if "reward" in self._channels else None
        self._all = np.arange(self.copies, dtype=np.int64)
        self._boxes = boxes(observations, self._games)
        #: Whether :meth:`close` was called.
        self.closed = False

    @property
    def num_envs(self) -> int:
        """How many copies there are, under the name that Gymnasium has for it."""
        return self.copies

    @property
    def num_agents(self) -> int:
        """How many agents a copy has."""
        return len(self.sizes)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """What learners ask an environment for; ``autoreset_mode`` where Gymnasium is installed."""
        found = {"name": f"phalanx_{self._games.kind}", "render_modes": ["rgb_array"]}
        try:
            from ._spaces import AUTORESET
        except ImportError:
            return found
        return {**found, "autoreset_mode": AUTORESET}

    @cached_property
    def single_observation_space(self) -> Any:
        """What one copy shows, ``[agent, number]`` (needs Gymnasium)."""
        return _spaces().observations(self._games, self._boxes)

    @cached_property
    def single_action_space(self) -> Any:
        """What the agents of one copy do, ``[agent]`` (needs Gymnasium)."""
        return _spaces().actions(self._games, self.continuous)

    @cached_property
    def observation_space(self) -> Any:
        """What all copies show (needs Gymnasium)."""
        return _spaces().batched(self.single_observation_space, self.copies)

    @cached_property
    def action_space(self) -> Any:
        """What :meth:`step` takes (needs Gymnasium)."""
        return _spaces().batched(self.single_action_space, self.copies)

    @property
    def kappa(self) -> int:
        """How many hops an agent sees."""
        return self._games.kappa

    @property
    def max_cycles(self) -> int:
        """Steps after which an episode is cut."""
        return self._games.max_cycles

    @property
    def graph(self) -> list[tuple[int, int]]:
        """Links between agents, each once."""
        return self._games.graph

    @property
    def neighbourhoods(self) -> list[list[int]]:
        """Whom each agent sees, in the order in which it does."""
        return self._games.groups

    @property
    def action_counts(self) -> list[int]:
        """How many actions each agent has."""
        return self._games.action_counts

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """Begins an episode in every copy; without a seed the next one of the same seed (the first time: of a random
        one). Returns observations ``[copy, agent, number]`` and empty infos. ``options`` are ignored."""
        self._starts.reset(seed)
        return self._shown(self._games.observe(self._all)), {}

    def step(self, actions: npt.ArrayLike) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """One step of every copy.

        ``actions`` are ``[copy, agent]``: integers, or numbers from -1 to 1 (float32 as PettingZoo has them, or
        float64), which may have a last axis of length 1. Returns observations ``[copy, agent, number]`` (uint8 states, or
        float32), rewards ``[copy, agent]``, terminations ``[copy]``, truncations ``[copy]`` and infos, which has an array
        ``[copy, agent]`` for each other channel.

        A copy whose episode ended begins the next one in the same step: its observations are already those of the new
        start, while rewards, terminations and truncations are those of the end. Only then ``infos["finished"]`` has the
        numbers of these copies, and ``infos["final_observations"]`` what their agents saw last, in the same order, and in
        worlds with :meth:`measures` ``infos["final_measures"]`` those of the episodes that ended, ``[finished, measure]``; the same
        as Gymnasium has it is ``infos["final_obs"]``, with a row per copy, and ``infos["_final_obs"]``, which of them count.
        """
        observations, channels, terminations, truncations = self._games.step(self._checked(actions))
        infos: dict[str, Array] = dict(zip(self._channels, channels))
        infos.pop("reward", None)
        rewards = np.zeros((self.copies, len(self.sizes))) if self._reward is None else channels[self._reward]
        finished = np.flatnonzero(terminations | truncations).astype(np.int64, copy=False)
        observations = self._shown(observations)
        if finished.size:
            infos["finished"] = finished
            infos["final_observations"] = observations[finished]
            infos["final_obs"] = np.zeros_like(observations)
            infos["final_obs"][finished] = observations[finished]
            infos["_final_obs"] = terminations | truncations
            if self._games.measure_names:
                infos["final_measures"] = self._games.measures()[finished]
            self._starts.begin(finished)
            observations[finished] = self._shown(self._games.observe(finished))
        return observations, rewards, terminations, truncations, infos

    def state(self) -> Array:
        """Everything there is: local states ``[copy, agent]``; in pistonball y of every piston, then x, y, vx, vy, angle
        and angular velocity of the ball, in platoon and junctions what agents share, as ``[copy, number]``."""
        return joint_state(self._games)

    def measures(self) -> dict[str, Array]:
        """What the world measures of the present episodes so far, ``[copy]`` each; in junctions ``travel_time``,
        ``travel_time_tables``, ``finished``, ``waiting_outside`` and ``longest_red``."""
        return dict(zip(self._games.measure_names, self._games.measures().T))

    def render(self) -> Array:
        """The present moment of the first copy as ``[row, column, colour]``."""
        return self._games.render()

    def close(self) -> None:
        """Nothing is left to close; other environments have it."""
        self.closed = True

    def _shown(self, seen: Array) -> Array:
        return seen if self._boxes is None else self._boxes.all(seen)

    def __repr__(self) -> str:
        return f"<{self.copies} copies of {self._games.kind}, {len(self.sizes)} agents, kappa={self.kappa}>"

    def _checked(self, actions: npt.ArrayLike) -> Array:
        """As a type that copies read."""
        array = as_array(actions, "actions")
        if not self.continuous and array.dtype.kind in "iu" and array.dtype != np.uint8:
            array = array.astype(np.int64, copy=False)
        return np.ascontiguousarray(array)


def _spaces() -> Any:
    try:
        from . import _spaces as found
    except ImportError as error:
        raise ImportError("spaces need Gymnasium: pip install gymnasium") from error
    return found


class Starts:
    """Seeds: begins episodes in copies, each after its own last one."""

    def __init__(self, games: Games, copies: int) -> None:
        self._games = games
        self._copies = copies
        #: The seed of the first copy.
        self.seed: int | None = None
        #: Generators of pistonball, one per copy.
        self.generators: list[np.random.Generator] = []
        self._seeds = np.zeros(copies, dtype=np.uint64)
        self._episodes = np.zeros(copies, dtype=np.uint64)

    def reset(self, seed: int | None) -> None:
        """Begins an episode in every copy."""
        if seed is not None or self.seed is None:
            self._seed(secrets.randbits(62) if seed is None else seed)
        self.begin(np.arange(self._copies, dtype=np.int64))

    def begin(self, which: npt.NDArray[np.int64]) -> None:
        """Begins the next episode in some copies."""
        if self.generators:
            n = len(self._games.names)
            heights, balls = np.empty((len(which), n)), np.empty((len(which), 3))
            for k, copy in enumerate(which):
                draw_start(self.generators[copy], heights[k], balls[k])
            self._games.drop(which, heights, balls)
        else:
            self._games.begin(which, self._seeds[which], self._episodes[which])
            self._episodes[which] += np.uint64(1)

    def _seed(self, seed: SupportsIndex) -> None:
        try:
            first = operator.index(None if isinstance(seed, bool) else seed)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"seed: {shown(seed)} is no integer") from None
        is_pistonball = self._games.kind == "pistonball"
        if first < 0 or not is_pistonball and first + self._copies - 1 > _LARGEST_SEED:
            most = "" if is_pistonball else f" to {_LARGEST_SEED - self._copies + 1}"
            raise ConfigError(f"seed: {first}; allowed are 0{most or ' and above'}")
        self.seed = first
        if is_pistonball:
            self.generators = [generator(first + k) for k in range(self._copies)]
        else:
            self._seeds = np.array([first + k for k in range(self._copies)], dtype=np.uint64)
            self._episodes[:] = 0


def generator(seed: int) -> np.random.Generator:
    """The one that ``gymnasium.utils.seeding.np_random`` makes."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def draw_start(
    generator: np.random.Generator, heights: npt.NDArray[np.float64], ball: npt.NDArray[np.float64]
) -> None:
    """Draws y of all pistons, and x, y and angular velocity of the ball, as pistonball_v6 does from its generator.

    PettingZoo takes a height at a time with ``choice``, which is ``integers`` of the number of heights; a piston starts on
    one of the eight lowest levels. It draws a spin twice; the second one counts.
    """
    n = len(heights)
    heights[:] = 491.0 - 4.0 * generator.integers(0, 8, size=n)
    down, right = generator.integers([-15, -30], [16, 31])
    spins = generator.uniform(-6 * math.pi, 6 * math.pi, size=2)
    # Never within the left wall, as in a row of two pistons.
    ball[:] = max(40.0 * n - 30.0 + right, 81.0), 410.0 + down, spins[1]


def joint_state(games: Games) -> Array:
    """What :meth:`VectorEnv.state` returns."""
    if games.kind == "pistonball":
        return games.physics()
    return games.shared() if games.has_views else games.joint_states()


def make_games(
    source: Source,
    copies: int,
    threads: int,
    kappa: int | None,
    max_cycles: int | None,
    continuous: bool,
    network: dict[str, Any] | None,
    world: dict[str, Any],
) -> Games:
    """Copies of what the arguments of :func:`env` describe."""
    if not isinstance(continuous, bool):
        raise TypeError(f"continuous: {shown(continuous)}; True or False is needed")
    if max_cycles is not None:
        max_cycles = whole_number("max_cycles", max_cycles, MOST_CYCLES)
    settings: dict[str, Any] = {}
    if world:
        settings["world"] = world
    if kappa is not None:
        settings["kappa"] = kappa
    if network is not None:
        if not isinstance(network, dict):
            raise TypeError(f"network: {shown(network)}; a dict with a kind is needed, such as {{'kind': 'ring'}}")
        settings["network"] = network
    if isinstance(source, str) and source == "junctions":
        has_files = "roadnet" in world or "flow" in world
        if has_files:
            # In place of the preset's town, and of its departures: those of the files count.
            world["kind"] = source
        decision = world.get("decision", _DECISION if has_files else None)
        if max_cycles is None and isinstance(decision, (int, np.integer)) and decision > 0:
            max_cycles = max(3600 // int(decision), 1)
    if isinstance(source, str):
        source = _PRESETS.get(source, source)
        if "n" in world and network is None:
            source = _PRESETS_BY_N.get(source, source)
    own = Own()
    if isinstance(source, World):
        source = {"world": {"kind": own.add_world(source)}}
    named = os.fspath(source) if isinstance(source, os.PathLike) else source
    config = Configuration(named, settings, own.registry, {})
    return Games(config, copies, max_cycles, continuous, threads)


def whole_number(name: str, value: SupportsIndex, most: int = 2**48) -> int:
    """A number of things, at least one."""
    try:
        number = operator.index(None if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: {shown(value)} is no integer") from None
    if not 1 <= number <= most:
        raise ConfigError(f"{name}: {number}; allowed are 1 to {most}")
    return number
