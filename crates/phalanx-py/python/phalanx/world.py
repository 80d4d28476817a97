"""Your own worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _phalanx
from ._checks import array as as_array
from ._checks import flag, listed, mapping, names, real, shown, whole
from ._phalanx import ConfigError
from .graphs import Graph, edges

if TYPE_CHECKING:
    from .environment import Adapter

#: Agents at most.
MOST_AGENTS = 10_000_000
#: States or actions of an agent at most.
LARGEST = 256
#: Worlds of up to so many agents are checked unless told otherwise.
CHECKED = 1000
#: Arguments for which a check calls `step` again.
REPEATS = 16


class World:
    """A factored world: every agent's next state follows from the states and actions of its parents, and from chance.

    Derive from it, set what it is made of, and write `step`, which moves all agents on at once:

    - `n`: number of agents; `graph`: links as pairs of agents, a dict of neighbours, a matrix of 0 and 1, a networkx graph, or a
      function of two agents;
    - `states`, `actions`: how many every agent has (one number, or one per agent), at most 256;
    - `start`: a state, an array of states, probabilities `[states]` or `[n, states]`, or a method `start(uniform)`;
    - `rewards`: tables r(s, a) by channel, `{"reward": [states, actions] or [n, states, actions]}`;
    - `ranges`: channels that `step` tells of in place of tables, with their smallest and largest reward,
      `{"reward": (0.0, 1.0)}`;
    - `step(states, actions, uniform)`: arrays of n whole numbers, and n numbers from [0, 1), an agent's own chance. Gives
      the n next states; with `ranges` a pair of them and the rewards (an array, or a dict of arrays by channel). It must read
      nothing but its arguments;
    - `parents`: whose state and action enter an agent's transition, a list per agent; its neighbours and itself if not given;
    - `transition(agent, states, actions)`: the law of an agent's next state given its parents', for exact computations; `step`
      must then give state x iff `uniform` lies in x's interval of the law, laid out in order.

    A world of at most 1,000 agents is checked before it is used: sizes and ranges, that `step` gives the same for the same
    arguments, reads parents only and draws from `transition` where there is one (`check = False` leaves it out).

    >>> import numpy as np, phalanx
    >>> class Lamps(phalanx.World):
    ...     '''A lamp in a ring burns on if it, or its left neighbour, was switched on; one switch in ten fails.'''
    ...     states = actions = 2
    ...     start = 0
    ...     rewards = {"reward": [[0.0, -0.3], [1.0, 0.7]]}
    ...     def __init__(self, n):
    ...         self.n, self.graph = n, [(i, (i + 1) % n) for i in range(n)]
    ...     def step(self, states, actions, uniform):
    ...         return ((actions | np.roll(actions, 1)) == 1) & (uniform >= 0.1)
    >>> run = phalanx.train(
    ...     world=Lamps(5), objective={"kind": "return"}, iterations=5, temporary=True
    ... )
    >>> run.config["world"]["kind"]
    'Lamps'
    """

    n: int
    graph: Graph
    states: int | Sequence[int]
    actions: int | Sequence[int]
    start: Any = 0
    rewards: Mapping[str, ArrayLike] = {}
    ranges: Mapping[str, tuple[float, float]] = {}
    parents: Sequence[Sequence[int]] | None = None
    check: bool | None = None
    # For worlds around environments.
    adapter: Adapter | None = None

    @property
    def name(self) -> str:
        """What configurations call it."""
        return type(self).__name__

    def step(self, states: NDArray[np.int64], actions: NDArray[np.int64], uniform: NDArray[np.float64]) -> Any:
        """Moves all agents on."""
        raise NotImplementedError(f"{self.name}.step is missing")

    @property
    def built(self) -> _phalanx.OwnWorld:
        """The world as the library knows it: as it is now, made and checked whenever it is asked for."""
        return self._made(True)

    def _made(self, is_checked: bool) -> _phalanx.OwnWorld:
        """The same; without the check if it is not asked for."""
        for needed in ("n", "graph", "states", "actions"):
            if not hasattr(self, needed):
                raise ConfigError(f"{needed}: {self.name} does not set it")
        n = whole(self.n, "n", 1, MOST_AGENTS)
        states, actions = sizes(self.states, n, "states"), sizes(self.actions, n, "actions")
        transition = self._transition()
        rewards, ranges = mapping(self.rewards, "rewards"), mapping(self.ranges, "ranges")
        names(rewards, "rewards")
        names(ranges, "ranges")
        if not callable(self.step):
            raise ConfigError(f"step: `{type(self.step).__name__}` is no function")
        start = self._start(n, states)
        is_checked &= n <= CHECKED if self.check is None else flag(self.check, "check")
        if is_checked:
            self._check_repeats(states, actions, start)
        return _phalanx.factored_world(
            n=n,
            edges=self._links(n),
            states=states,
            actions=actions,
            parents=None if self.parents is None else self._parents(n),
            tables=[(name, _tables(table, states, actions, name)) for name, table in rewards.items()],
            sampled=[(name, interval(pair, f"ranges[{name!r}]")) for name, pair in ranges.items()],
            start=start,
            step=self._step,
            transition=None if transition is None else lambda *given: _law(transition(*given)),
            is_checked=is_checked,
        )

    def _check_repeats(self, states: list[int], actions: list[int], start: Any) -> None:
        """Whether `step` and `start` give the same for the same arguments: twice in a row, and once more when others have
        been given in between, in another order, which tells a clock."""
        rng = np.random.default_rng(0)

        def given() -> tuple[NDArray[Any], ...]:
            return rng.integers(0, states), rng.integers(0, actions), rng.random(len(states))

        asked = [given() for _ in range(REPEATS)]

        def check(name: str, call: Callable[..., Any]) -> None:
            first = [call(*(array.copy() for array in arrays)) for arrays in asked for _ in range(2)]
            again = [call(*(array.copy() for array in arrays)) for arrays in reversed(asked)]
            for k in range(REPEATS):
                if not _same(first[2 * k], first[2 * k + 1]) or not _same(first[2 * k], again[-1 - k]):
                    raise ConfigError(
                        f"{name}: gives different results for the same arguments; it must read nothing else, and take its "
                        "chance from `uniform` (check = False leaves this out)"
                    )

        check("step", self._step)
        if callable(start):
            check("start", lambda states, actions, uniform: start(uniform))

    def _links(self, n: int) -> list[tuple[int, int]]:
        if isinstance(self.graph, Iterator):
            # It can be gone through only once.
            self.graph = list(self.graph)
        return edges(self.graph, range(n))

    def _parents(self, n: int) -> list[list[int]]:
        rows = listed(self.parents, "parents")
        if len(rows) != n:
            raise ConfigError(f"parents: {len(rows)} lists for {n} agents")
        return [
            sorted({whole(p, f"parents[{i}]", 0, n - 1) for p in listed(row, "parents")})
            for i, row in enumerate(rows)
        ]

    def _transition(self) -> Any:
        transition = getattr(self, "transition", None)
        if transition is not None and not callable(transition):
            raise ConfigError(f"transition: `{type(transition).__name__}` is no function")
        return transition

    def _start(self, n: int, states: list[int]) -> Any:
        """A law per agent, or a function that draws states."""
        start = self.start
        if callable(start):
            return lambda uniform: whole_numbers(start(uniform), "start")
        given = as_array(start, "start")
        if given.dtype.kind in "iub" and given.ndim <= 1:
            chosen = np.broadcast_to(given, n) if given.ndim == 0 or len(given) == n else None
            if chosen is None:
                raise ConfigError(f"start: {len(given)} states for {n} agents")
            if any(not 0 <= state < size for state, size in zip(chosen, states, strict=True)):
                raise ConfigError(f"start: {start}; states are 0 to {max(states) - 1}")
            return [np.eye(size)[int(state)].tolist() for state, size in zip(chosen, states, strict=True)]
        if given.dtype.kind != "f" or given.ndim not in (1, 2):
            raise ConfigError("start: give a state, n states, probabilities of states, or a function")
        laws = np.broadcast_to(given, (n, len(given))) if given.ndim == 1 else given
        if len(laws) != n:
            raise ConfigError(f"start: {len(laws)} laws for {n} agents")
        for i, size in enumerate(states):
            if size != laws.shape[1]:
                raise ConfigError(f"start: has no law over agent {i}'s {size} states")
        is_law = ((laws >= 0) & (laws <= 1)).all(axis=1) & (abs(laws.sum(axis=1, dtype=float) - 1) <= 1e-8)
        if not is_law.all():
            i = int(np.argmin(is_law))
            raise ConfigError(f"start: agent {i}'s {laws[i].tolist()} are no probabilities that sum to 1")
        return laws.tolist()

    def _step(
        self, states: NDArray[np.int64], actions: NDArray[np.int64], uniform: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
        moved = self.step(states, actions, uniform)
        if not self.ranges:
            return whole_numbers(moved, "step"), []
        if not (isinstance(moved, tuple) and len(moved) == 2):
            raise ConfigError("step: must give (next states, rewards), because `ranges` names channels")
        moved, earned = moved
        if not isinstance(earned, Mapping):
            if len(self.ranges) > 1:
                raise ConfigError(f"step: must give a dict of rewards by channel: {', '.join(self.ranges)}")
            earned = {name: earned for name in self.ranges}
        if earned.keys() != self.ranges.keys():
            raise ConfigError(f"step: gives rewards {list(earned)}, but `ranges` has {list(self.ranges)}")
        return whole_numbers(moved, "step"), [numbers(earned[name], "step") for name in self.ranges]

    def model(self, gamma: float) -> dict[str, Any]:
        """The world as the `model` of `phalanx.exact`; needs `transition`, and a `start` that is no function."""
        transition = self._transition()
        if transition is None:
            raise ConfigError(f"transition: {self.name} does not have it, and exact computations need it")
        n = whole(self.n, "n", 1, MOST_AGENTS)
        states, actions = sizes(self.states, n, "states"), sizes(self.actions, n, "actions")
        law = self._start(n, states)
        if callable(law):
            raise ConfigError("start: is a function; exact computations need probabilities")
        links = self._links(n)
        near = [sorted({i, *(b if a == i else a for a, b in links if i in (a, b))}) for i in range(n)]
        parents = near if self.parents is None else self._parents(n)
        laws = []
        for i, row in enumerate(parents):
            joint = product(product(*(range(states[p]) for p in row)), product(*(range(actions[p]) for p in row)))
            given = (transition(i, np.array(s), np.array(a)) for s, a in joint)
            laws.append(np.concatenate([_law(found) for found in given]).tolist())
        return {
            "n": n,
            "gamma": gamma,
            "state_sizes": states,
            "action_sizes": actions,
            "edges": [list(link) for link in links],
            "parents": parents,
            "transition": laws,
            "rho": {"kind": "product", "local": law},
        }

    def __repr__(self) -> str:
        return f"<World {self.name} of {getattr(self, 'n', '?')} agents>"


def _same(a: Any, b: Any) -> bool:
    """Whether states, with rewards or without, are the same."""
    if isinstance(a, tuple):
        return _same(a[0], b[0]) and all(
            np.array_equal(x, y, equal_nan=True) for x, y in zip(a[1], b[1], strict=True)
        )
    return np.array_equal(a, b)


def sizes(given: Any, n: int, name: str) -> list[int]:
    """A number per agent."""
    array = as_array(given, name)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ConfigError(f"{name}: {shown(given)}; give a whole number, or one per agent")
    if array.ndim == 1 and len(array) != n:
        raise ConfigError(f"{name}: {len(array)} numbers for {n} agents")
    if (array < 1).any() or (array > LARGEST).any():
        raise ConfigError(f"{name}: {shown(given)}; allowed are 1 to {LARGEST}")
    return [int(size) for size in np.broadcast_to(array, n)]


def whole_numbers(found: Any, name: str) -> NDArray[np.int64]:
    """States that `name` gave."""
    array = as_array(found, name)
    if array.dtype.kind not in "iub" or array.ndim != 1:
        raise ConfigError(
            f"{name}: gives {array.dtype} of shape {array.shape}; a whole number per agent is needed"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def numbers(found: Any, name: str) -> NDArray[np.float64]:
    """Rewards that `name` gave."""
    array = as_array(found, name)
    if array.dtype.kind not in "fiub" or array.ndim != 1:
        raise ConfigError(
            f"{name}: gives rewards of {array.dtype} and shape {array.shape}; one per agent is needed"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def interval(pair: Any, name: str) -> tuple[float, float]:
    """Smallest and largest."""
    is_row = isinstance(pair, Sequence) and not isinstance(pair, str | bytes) or np.ndim(pair) == 1
    ends = list(pair) if is_row and not isinstance(pair, Mapping) else []
    if len(ends) != 2:
        raise ConfigError(f"{name}: {shown(pair)}; give the smallest and the largest")
    low, high = (real(end, name) for end in ends)
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ConfigError(f"{name}: {low} to {high} is no range")
    return low, high


def _tables(table: ArrayLike, states: list[int], actions: list[int], name: str) -> list[list[float]]:
    field = f"rewards[{name!r}]"
    try:
        given = np.asarray(table)
        if given.dtype.kind in "fiub" and given.ndim not in (2, 3):
            raise ConfigError(
                f"{field}: shape {given.shape}; tables [states, actions] or [n, states, actions] are needed"
            )
        rows = [given] * len(states) if given.ndim == 2 else list(given)
    except ConfigError:
        raise
    except (TypeError, ValueError):
        # Agents of different sizes.
        rows = [np.asarray(row) for row in listed(table, field)]
    if any(row.dtype.kind not in "fiub" for row in rows):
        raise ConfigError(f"{field}: {rows[0].dtype} are no numbers")
    if len(rows) != len(states):
        raise ConfigError(f"{field}: {len(rows)} tables for {len(states)} agents")
    for i, (row, s, a) in enumerate(zip(rows, states, actions, strict=True)):
        if row.shape != (s, a):
            raise ConfigError(f"{field}: agent {i}'s has shape {row.shape}, not {(s, a)}")
        if not np.isfinite(row).all():
            raise ConfigError(f"{field}: agent {i}'s holds {row[~np.isfinite(row)][0]}")
    return [row.ravel().tolist() for row in rows]


def _law(found: Any) -> NDArray[np.float64]:
    array = as_array(found, "transition")
    if array.dtype.kind not in "fiub" or array.ndim != 1:
        raise ConfigError(
            f"transition: gives {array.dtype} of shape {array.shape}; one probability per state is needed"
        )
    return np.ascontiguousarray(array, dtype=np.float64)
