"""Policies that are functions, for `phalanx.evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._checks import shown
from ._phalanx import ConfigError, Configuration, Fixed
from .policy import Policy

if TYPE_CHECKING:
    from .environment import Adapter

Array = NDArray[Any]
#: By how much probabilities may fail to sum to 1: as much as single precision does.
_TOLERANCE = 1e-5


def fixed_by(
    config: Configuration, policy: Callable[..., Any] | Policy, adapter: Adapter | None, batched: bool
) -> Fixed:
    """A function as a policy in the world of `config`."""
    given = policy
    if isinstance(policy, Policy):
        # Of the evaluation's numbers, not of the policy's own: the same seed draws the same actions.
        policy, batched = (policy._laws, False) if adapter else (policy._laws_of_rows, True)
    if batched and adapter is not None:
        raise ConfigError(
            "batched: is for worlds of this package; in an environment a policy is called step by step"
        )
    caller = _Batched(policy) if batched else _InEnvironment(policy, adapter) if adapter else _ByAgent(policy)
    fixed = Fixed.of_function(config, caller, adapter is not None)
    caller.settle(fixed)
    if isinstance(given, Policy) and given.neighbours != fixed.groups:
        raise ConfigError(
            "policy: reads other neighbours than there are; is it of this world, and with its kappa?"
        )
    return fixed


class _Caller:
    """Calls a function, and makes of what it says one array for all episodes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._counts: list[int] = []
        self._most = 0

    def settle(self, fixed: Fixed) -> None:
        """Takes from the world what it needs to know."""
        self._counts, self._most = fixed.action_counts, max(fixed.action_counts)

    def _law(self, given: Array, agent: int, name: str) -> Array:
        if given.shape != (self._counts[agent],):
            raise ConfigError(
                f"policy: gives {name} {given.shape} probabilities; it has {self._counts[agent]} actions"
            )
        return _checked(given, name)


class _Batched(_Caller):
    """`function([episode, agent, number]) -> [episode, agent]`, or `[episode, agent, action]`."""

    def __call__(self, seen: Array) -> Array:
        found = _array(self._function(seen))
        if found.dtype.kind in "iub" and found.shape == seen.shape[:2]:
            return np.ascontiguousarray(found, dtype=np.int64)
        if found.dtype.kind == "f" and found.shape == (*seen.shape[:2], self._most):
            laws = np.array(found, dtype=np.float64)
            for agent, count in enumerate(self._counts):
                laws[:, agent, :count] = _checked(laws[:, agent, :count], f"agent {agent}")
            return laws
        raise ConfigError(
            f"policy: gives {found.dtype} of shape {found.shape}; actions {list(seen.shape[:2])} as integers, or "
            f"probabilities {[*seen.shape[:2], self._most]} are needed"
        )


class _ByAgent(_Caller):
    """`function({agent: observation}) -> {agent: action or probabilities}`, an episode at a time."""

    def settle(self, fixed: Fixed) -> None:
        super().settle(fixed)
        self._names: list[Any] = [f"{fixed.prefix}_{i}" for i in range(fixed.agents)]
        # Where a neural network could read a view, its numbers; else the states of a neighbourhood.
        self._sizes = [
            len(group) if width is None else width for group, width in zip(fixed.groups, fixed.widths, strict=True)
        ]

    def __call__(self, seen: Array) -> Array:
        said = [self._said(self._observations(row)) for row in seen]
        if all(isinstance(one, int) for row in said for one in row):
            return np.array(said, dtype=np.int64)
        laws = np.zeros((len(said), len(self._names), self._most))
        for k, row in enumerate(said):
            for i, one in enumerate(row):
                if isinstance(one, int):
                    laws[k, i, one] = 1.0
                else:
                    laws[k, i, : len(one)] = one
        return laws

    def _observations(self, row: Array) -> dict[Any, Any]:
        return {name: row[i, : self._sizes[i]] for i, name in enumerate(self._names)}

    def _said(self, observations: dict[Any, Any]) -> list[int | Array]:
        found = self._function(observations)
        if not isinstance(found, Mapping):
            raise ConfigError(
                f"policy: gives `{type(found).__name__}`; a dict with an action for every agent is needed"
            )
        missing = [name for name in self._names if name not in found]
        if missing:
            raise ConfigError(f"policy: gives no action of {missing[0]!r}")
        return [self._one(found[name], i, name) for i, name in enumerate(self._names)]

    def _one(self, said: Any, agent: int, name: Any) -> int | Array:
        """A number of an action, or probabilities of all of them."""
        if type(said) is int:
            return self._number(said, agent, name)
        array = _array(said)
        if array.dtype.kind in "iub" and array.size == 1:
            return self._number(int(array.reshape(())), agent, name)
        if array.dtype.kind == "f" and array.ndim == 1:
            return self._law(array, agent, repr(name))
        raise ConfigError(
            f"policy: gives {name!r} {shown(said)}; the number of an action or probabilities are needed"
        )

    def _number(self, action: int, agent: int, name: Any) -> int:
        if not 0 <= action < self._counts[agent]:
            raise ConfigError(
                f"policy: gives {name!r} the action {action}; allowed are 0 to {self._counts[agent] - 1}"
            )
        return action


class _InEnvironment(_ByAgent):
    """The same in an environment of somebody else's, with its own observations and actions."""

    def __init__(self, function: Callable[..., Any], adapter: Adapter) -> None:
        super().__init__(function)
        self._adapter = adapter

    def settle(self, fixed: Fixed) -> None:
        super().settle(fixed)
        self._names = self._adapter.agents

    def _observations(self, row: Array) -> dict[Any, Any]:
        return self._adapter.unread(row)

    def _one(self, said: Any, agent: int, name: Any) -> int | Array:
        choice = self._adapter.choice(agent, said)
        return super()._one(said if choice is None else choice, agent, name)


def _array(found: Any) -> Array:
    try:
        return np.asarray(found.detach().cpu() if hasattr(found, "detach") else found)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"policy: gives what is no array: {error}") from None


def _checked(laws: Array, name: str) -> Array:
    """Probabilities, made to sum to 1 exactly."""
    sums = laws.sum(axis=-1, dtype=np.float64, keepdims=True)
    if not ((laws >= 0).all() and (abs(sums - 1) <= _TOLERANCE).all()):
        raise ConfigError(f"policy: gives {name} {laws.tolist()!r:.80}, which are no probabilities that sum to 1")
    return np.asarray(laws / sums, dtype=np.float64)
