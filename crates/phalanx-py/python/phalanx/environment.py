"""Environments that others wrote, as worlds to train in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _phalanx
from ._checks import array as as_array
from ._checks import flag, listed, mapping, names, real, shown, text, whole
from ._phalanx import ConfigError
from .graphs import Graph, edges
from .world import LARGEST, World, interval

#: What a channel is made of: `f(agent, observation, action, reward, info)`, after the step; or the name of a number in `info`.
Channel = Callable[[Any, Any, Any, float, Mapping[str, Any]], float] | str
#: Where nothing is known of an environment's rewards.
WIDEST = (-1e9, 1e9)
#: Steps of an episode that are compared.
CHECKED_STEPS = 64


def from_pettingzoo(
    make: Callable[[], Any],
    graph: Graph,
    *,
    cell: Callable[..., int] | None = None,
    cells: int | Sequence[int] = 1,
    actions: Sequence[Any] | Mapping[Any, Sequence[Any]] | None = None,
    channels: Mapping[str, Channel] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    scale: Callable[[NDArray[np.float32]], Any] | None = None,
    name: str | None = None,
    check: bool = True,
    reuse: bool = True,
) -> World:
    """A parallel environment of PettingZoo, with a graph, as a world.

    An agent's neural networks read the observations of its neighbourhood, flattened. Unless `policy` and `critic` say otherwise,
    both are neural networks (kinds `network` and `returns`); models that see no observation are refused. Utilities of the occupancy
    are about what `cell(observation)` makes of an agent's own observation, one of `cells` numbers from 0; without it there is
    one cell, and occupancies count actions alone. Episodes are begun by `reset(seed=…)` and end when every agent has
    terminated or was truncated, or at `horizon`; of an agent that has left, observation and rewards are 0.

    :param make: makes an environment, e.g. `lambda: simple_spread_v3.parallel_env(max_cycles=50)`. Several are in use at a time.
    :param graph: links between agents by name or number: pairs, a dict of neighbours, a matrix of 0 and 1, a networkx graph, or a
        function of two names.
    :param actions: what an agent can do, where its action space is not discrete: a list of actions for all agents, or one per agent.
    :param channels: rewards beside `reward`: a function of agent, observation, action, reward and info, or a name in `info`.
    :param ranges: smallest and largest reward of a channel, where known: it tells bounds that cannot be met, and
        makes intervals narrower.
    :param scale: applied to an observation, as an array of numbers, before neural networks read it; it may shrink it.
    :param check: whether episodes of one seed are compared before training, on a copy that was used in between.
    :param reuse: whether copies are used again, by `reset(seed=...)`. `False` makes a fresh one for every episode, for
        environments that remember something over resets.

    >>> import numpy as np, phalanx
    >>> class Chase:                                        # any object with the methods of a ParallelEnv will do
    ...     possible_agents = ["cat", "dog"]
    ...     def observation_space(self, agent): return None
    ...     def action_space(self, agent): return type("Discrete", (), {"n": 2})()
    ...     def reset(self, seed=None, options=None):
    ...         self.at, self.agents = np.zeros(2), list(self.possible_agents)
    ...         return dict(zip(self.agents, self.at)), {}
    ...     def step(self, actions):
    ...         self.at = np.clip(self.at + [2 * actions["cat"] - 1, 2 * actions["dog"] - 1], -2, 2)
    ...         far = abs(self.at[0] - self.at[1])
    ...         seen = dict(zip(self.agents, self.at))
    ...         no = dict.fromkeys(self.agents, False)
    ...         return seen, {"cat": far, "dog": -far}, no, no, {agent: {} for agent in self.agents}
    >>> world = phalanx.from_pettingzoo(Chase, [("cat", "dog")], cell=lambda at: int(at) + 2, cells=5)
    >>> run = phalanx.train(
    ...     world=world, objective={"kind": "return"}, constraint=[{"kind": "state_entropy", "at_least": 0.5}],
    ...     iterations=3, horizon=10, temporary=True,
    ... )
    >>> sorted(run.policy.act({"cat": 0.0, "dog": 1.0}))
    ['cat', 'dog']
    """
    if not callable(make):
        kind = type(make).__name__
        raise ConfigError(
            f"make: `{kind}` is no function; give one that makes an environment, e.g. lambda: env(...)"
        )
    given = mapping({} if channels is None else channels, "channels")
    ends = mapping({} if ranges is None else ranges, "ranges")
    names(given, "channels")
    names(ends, "ranges")
    if scale is not None and not callable(scale):
        raise ConfigError(f"scale: `{type(scale).__name__}` is no function")
    called = "environment" if name is None else text(name, "name")
    return _EnvironmentWorld(
        Adapter(make, cell, cells, actions, given, scale, flag(reuse, "reuse")),
        graph,
        ends,
        called,
        flag(check, "check"),
    )


class Adapter:
    """An environment in the library's terms: agents and actions by number, observations as numbers."""

    def __init__(
        self,
        make: Callable[[], Any],
        cell: Callable[..., int] | None,
        cells: int | Sequence[int],
        actions: Sequence[Any] | Mapping[Any, Sequence[Any]] | None,
        channels: Mapping[str, Channel],
        scale: Callable[[NDArray[np.float32]], Any] | None,
        reuse: bool,
    ) -> None:
        self._make, self._cell, self._scale, self._reuse = make, cell, scale, reuse
        self._free: list[Any] = []
        first = self._environment()
        if hasattr(first, "agent_iter") and hasattr(first, "last"):
            raise ConfigError(
                f"make: makes a `{type(first).__name__}` whose agents take turns (AEC); use its parallel_env, or wrap it in "
                "pettingzoo.utils.conversions.aec_to_parallel"
            )
        for needed in ("possible_agents", "reset", "step", "action_space", "observation_space"):
            if not hasattr(first, needed):
                raise ConfigError(
                    f"make: makes a `{type(first).__name__}` without {needed}; a ParallelEnv is needed"
                )
        self.agents: list[Any] = listed(first.possible_agents, "make: possible_agents")
        if not self.agents:
            raise ConfigError("make: makes an environment without agents")
        if cell is not None and not callable(cell):
            raise ConfigError(f"cell: `{type(cell).__name__}` is no function")
        if cell is None and not (isinstance(cells, int) and cells == 1):
            raise ConfigError("cells: is for `cell`, which is missing")
        n = len(self.agents)
        each = [cells] * n if hasattr(cells, "__index__") else listed(cells, "cells")
        self.cells = [whole(size, "cells", 1, LARGEST) for size in each]
        if len(self.cells) != n:
            raise ConfigError(f"cells: {len(self.cells)} numbers for {n} agents")
        unusable = [
            key for key, channel in channels.items() if not (callable(channel) or isinstance(channel, str))
        ]
        if unusable:
            raise ConfigError(f"channels[{unusable[0]!r}]: give a function, or the name of a number in infos")
        if "reward" in channels:
            raise ConfigError("channels: `reward` is the environment's own")
        self.channels = dict(channels)
        self._choices = [_choices(agent, first, actions) for agent in self.agents]
        self.actions = [found if isinstance(found, int) else len(found) for found in self._choices]
        seen, _ = self._reset(first, 0)
        self._examples = [seen[agent] for agent in self.agents]
        self.widths = [len(self._flat(example)) for example in self._examples]
        self._ends = np.cumsum([0, *self.widths])
        self.release(first)

    def _environment(self) -> Any:
        try:
            return self._free.pop()
        except IndexError:
            return self._make()

    def release(self, environment: Any) -> None:
        """Nobody plays in it any more."""
        if self._reuse:
            self._free.append(environment)
        elif hasattr(environment, "close"):
            environment.close()

    def _reset(self, environment: Any, seed: int) -> tuple[Mapping[Any, Any], Any]:
        found = environment.reset(seed=seed)
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Mapping)):
            raise ConfigError("make: its reset must give (observations by agent, infos)")
        missing = [agent for agent in self.agents if agent not in found[0]]
        if missing:
            raise ConfigError(f"make: its reset gives no observation of {missing[0]!r}")
        return found

    def _flat(self, observation: Any) -> NDArray[np.float32]:
        if isinstance(observation, Mapping):
            parts = [self._flat(observation[key]) for key in _ordered(observation)]
            return np.concatenate(parts) if parts else np.zeros(0, np.float32)
        if isinstance(observation, tuple) and observation:
            return np.concatenate([self._flat(part) for part in observation])
        array = as_array(observation, "observations")
        if array.dtype.kind not in "fiub":
            raise ConfigError(f"observations: {array.dtype} cannot be read as numbers")
        flat = np.ravel(array).astype(np.float32)
        return flat if self._scale is None else np.ravel(np.asarray(self._scale(flat), dtype=np.float32))

    def read(self, observations: Mapping[Any, Any]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Cells and numbers of all agents; 0 of those that are missing."""
        cells = np.zeros(len(self.agents), dtype=np.int64)
        numbers = np.zeros(self._ends[-1], dtype=np.float32)
        for i, agent in enumerate(self.agents):
            if agent not in observations:
                continue
            seen = observations[agent]
            flat = self._flat(seen)
            if len(flat) != self.widths[i]:
                raise ConfigError(
                    f"observations: {agent!r} has {len(flat)} numbers, not {self.widths[i]} as at first"
                )
            if not np.isfinite(flat).all():
                raise ConfigError(f"observations: {agent!r} has {flat[~np.isfinite(flat)][0]}")
            numbers[self._ends[i] : self._ends[i + 1]] = flat
            if self._cell is not None:
                cells[i] = whole(self._cell(seen), f"cell (of {agent!r})", 0, self.cells[i] - 1)
        return cells, numbers

    def unread(self, numbers: NDArray[np.float32]) -> dict[Any, Any]:
        """Observations by agent from the numbers of all, in the form in which the environment gives them; as they are where
        `scale` has made something else of them."""
        parts = (numbers[self._ends[i] : self._ends[i + 1]] for i in range(len(self.agents)))
        if self._scale is not None:
            return dict(zip(self.agents, parts, strict=True))
        formed = (_formed(example, part)[0] for example, part in zip(self._examples, parts, strict=True))
        return dict(zip(self.agents, formed, strict=True))

    def choice(self, agent: int, action: Any) -> int | None:
        """Which of the listed actions the environment's `action` is; none where they are numbers anyhow."""
        choices = self._choices[agent]
        if isinstance(choices, int):
            return None
        return next((k for k, known in enumerate(choices) if np.array_equal(known, action)), None)

    def action(self, agent: Any, choice: int) -> Any:
        """An action as the environment knows it."""
        choices = self._choices[self.agents.index(agent)]
        return choice if isinstance(choices, int) else choices[choice]

    def begin(self, seed: int) -> _Episode:
        """A new episode."""
        environment = self._environment()
        seen, _ = self._reset(environment, seed)
        return _Episode(self, environment, seen)

    def check_repeats(self) -> None:
        """Plays one seed, another one, and the first again, all on one copy where copies are used again: training does."""
        first = self._played(1)
        self._played(2)
        for step, (before, after) in enumerate(zip(first, self._played(1), strict=False)):
            if not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
                raise _unlike(step)

    def _played(self, seed: int) -> list[tuple[NDArray[Any], ...]]:
        """What is seen and earned in an episode of random actions."""
        episode, rng = self.begin(seed), np.random.default_rng(seed)
        found: list[tuple[NDArray[Any], ...]] = []
        for _ in range(CHECKED_STEPS):
            earned, over = episode.step(rng.integers(0, self.actions))
            found.append((*episode.observe(), earned))
            if over:
                break
        return found


def _unlike(step: int) -> ConfigError:
    """Two episodes that should be the same are not."""
    return ConfigError(
        f"make: two episodes of one seed differ at step {step}: the environment remembers something over resets, or draws "
        "numbers of its own; reuse=False makes a fresh copy for every episode, check=False trains all the same"
    )


def _ordered(observation: Mapping[Any, Any]) -> list[Any]:
    """The keys of an observation, in an order that does not depend on how it was made."""
    try:
        return sorted(observation)
    except TypeError:
        raise ConfigError(f"observations: the keys {shown(list(observation))} have no order") from None


def _is_set(flags: Mapping[Any, Any], agent: Any, name: str) -> bool:
    """What a dict of flags says of an agent; nothing means no. Arrays of one entry will do."""
    said = as_array(flags.get(agent, False), name)
    if said.size != 1 or said.dtype.kind not in "biuf" or said.item() not in (0, 1):
        raise ConfigError(f"{name} (of {agent!r}): {shown(flags[agent])}; True or False is needed")
    return bool(said.item())


def _formed(example: Any, numbers: NDArray[np.float32]) -> tuple[Any, NDArray[np.float32]]:
    """Something like the example from the first numbers, and the rest of them."""
    if isinstance(example, Mapping):
        made = {}
        for key in _ordered(example):
            made[key], numbers = _formed(example[key], numbers)
        return made, numbers
    if isinstance(example, tuple) and example:
        parts = []
        for part in example:
            formed, numbers = _formed(part, numbers)
            parts.append(formed)
        return tuple(parts), numbers
    like = np.asarray(example)
    formed = numbers[: like.size].reshape(like.shape).astype(like.dtype)
    return formed if isinstance(example, np.ndarray) else formed.tolist(), numbers[like.size :]


class _Episode:
    """One episode, as the library plays it."""

    def __init__(self, adapter: Adapter, environment: Any, seen: Mapping[Any, Any]) -> None:
        self._adapter, self._environment = adapter, environment
        self._cells, self._numbers = adapter.read(seen)
        self._living = set(adapter.agents)

    def observe(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self._cells, self._numbers

    def step(self, actions: NDArray[np.int64]) -> tuple[NDArray[np.float64], bool]:
        adapter = self._adapter
        given = {
            agent: adapter.action(agent, int(choice))
            for agent, choice in zip(adapter.agents, actions, strict=True)
            if agent in self._living
        }
        moved = self._environment.step(given)
        if not (isinstance(moved, tuple) and len(moved) == 5 and all(isinstance(part, Mapping) for part in moved)):
            raise ConfigError(
                "make: its step must give five dicts: observations, rewards, terminations, truncations, infos"
            )
        seen, earned, ended, cut, infos = moved
        rewards = np.zeros((1 + len(adapter.channels), len(adapter.agents)))
        leaving: set[Any] = set()
        for i, agent in enumerate(adapter.agents):
            if agent not in self._living:
                continue
            leaves = _is_set(ended, agent, "terminations") or _is_set(cut, agent, "truncations")
            if leaves:
                leaving.add(agent)
            missing = (
                "reward" if agent not in earned else "observation" if agent not in seen and not leaves else None
            )
            if missing:
                raise ConfigError(f"make: its step gives no {missing} of {agent!r}")
            rewards[0, i] = reward = real(earned[agent], f"rewards (of {agent!r})")
            for k, (name, channel) in enumerate(adapter.channels.items()):
                info = mapping(infos.get(agent, {}), f"infos (of {agent!r})")
                if callable(channel):
                    rewards[1 + k, i] = real(
                        channel(agent, seen.get(agent), given[agent], reward, info), f"channels[{name!r}]"
                    )
                elif channel in info:
                    rewards[1 + k, i] = real(info[channel], f"channels[{name!r}]")
                else:
                    raise ConfigError(
                        f"channels[{name!r}]: infos of {agent!r} have no {channel!r}, but {shown(list(info))}"
                    )
        if not np.isfinite(rewards).all():
            raise ConfigError(f"rewards: {rewards[~np.isfinite(rewards)][0]}")
        self._living -= leaving
        self._cells, self._numbers = adapter.read({agent: seen[agent] for agent in self._living if agent in seen})
        return rewards.ravel(), not self._living

    def __del__(self) -> None:
        # There is none if the first observation could not be read.
        if hasattr(self, "_environment"):
            self._adapter.release(self._environment)


class _EnvironmentWorld(World):
    """What `from_pettingzoo` makes."""

    def __init__(
        self,
        adapter: Adapter,
        graph: Graph,
        ranges: Mapping[str, tuple[float, float]],
        name: str,
        check: bool,
    ) -> None:
        self.adapter: Adapter = adapter
        self.n = len(adapter.agents)
        self.graph, self.ranges, self.check = graph, ranges, check
        self.states, self.actions = adapter.cells, adapter.actions
        self._edges = edges(graph, adapter.agents)
        unknown = [key for key in ranges if key != "reward" and key not in adapter.channels]
        if unknown:
            raise ConfigError(f"ranges: {unknown[0]!r} is no channel; there are {['reward', *adapter.channels]}")
        self._name = name
        self._is_checked = False

    @property
    def name(self) -> str:
        return self._name

    def _made(self, is_checked: bool) -> _phalanx.OwnWorld:
        # Once is enough: copies that were used since are what training makes of them.
        is_checked = is_checked and bool(self.check) and not self._is_checked
        if is_checked:
            self.adapter.check_repeats()
        try:
            world = self._build(is_checked)
        except ConfigError as error:
            differ = str(error).partition("world: two episodes from one place differ at step ")[2]
            raise _unlike(int(differ)) if differ.isdecimal() else error from None
        self._is_checked |= is_checked
        return world

    def _build(self, is_checked: bool) -> _phalanx.OwnWorld:
        names = ["reward", *self.adapter.channels]
        given = {name: interval(self.ranges.get(name, WIDEST), f"ranges[{name!r}]") for name in names}
        return _phalanx.parallel_world(
            n=len(self.adapter.agents),
            edges=self._edges,
            cells=self.adapter.cells,
            actions=self.adapter.actions,
            widths=self.adapter.widths,
            channels=list(given.items()),
            begin=self.adapter.begin,
            is_checked=is_checked,
        )


def _choices(agent: Any, environment: Any, actions: Any) -> int | list[Any]:
    """How many actions an agent has, or which."""
    if actions is not None:
        given = actions.get(agent, ()) if isinstance(actions, Mapping) else actions
        choices = listed(given, "actions")
        if not choices:
            raise ConfigError(f"actions: there are none of {agent!r}")
        if len(choices) > LARGEST:
            raise ConfigError(f"actions: {agent!r} has {len(choices)}; allowed are 1 to {LARGEST}")
        return choices
    space = environment.action_space(agent)
    size = getattr(space, "n", None)
    if size is None or getattr(space, "start", 0) != 0:
        raise ConfigError(
            f"actions: {agent!r} acts in {space}, which is not Discrete from 0; give a list of actions to choose from"
        )
    return whole(size, "actions", 1, LARGEST)
