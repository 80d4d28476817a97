"""Utilities of one's own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _phalanx
from ._phalanx import ConfigError

#: A table `[states, actions]` of discounted visits; its mass is 1/(1 - gamma).
Occupancy = NDArray[np.float64]
_Call = Callable[[Occupancy, float, int], Any]


class Utility:
    """A function of one agent's occupancy measure, as an objective or in a constraint.

    `value(occupancy)` is given the table λ[s, a] of discounted visits, whose sum is 1/(1 - γ). `gradient(occupancy)` gives
    its slopes, a table of the same shape; it is compared with differences of `value` before a run begins. Without
    `gradient`, `value` must be written in JAX or PyTorch, which then differentiate it. Both functions may ask for `gamma` and
    `agent` by adding parameters of these names.

    >>> import phalanx
    >>> def share(occupancy, gamma):                       # time in state 1, as a share
    ...     return (1 - gamma) * occupancy[1].sum()
    >>> def slope(occupancy, gamma):
    ...     return (1 - gamma) * np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> run = phalanx.train(
    ...     "synthetic", iterations=5, out=getfixture("tmp_path") / "run",
    ...     constraint=[{"kind": phalanx.Utility(share, slope), "at_most": 0.6}],
    ... )
    >>> set(run.agents["constraint"].tolist())
    {'share'}
    """

    def __init__(
        self,
        value: Callable[..., Any],
        gradient: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        range: tuple[float, float] | None = None,
        check: bool = True,
    ) -> None:
        """
        :param name: what configurations and tables call it; the function's name if not given.
        :param range: smallest and largest value, if known: bounds that cannot be met are then found before training.
        :param check: whether the gradient is compared with differences of the value.
        """
        if not callable(value):
            raise ConfigError(f"value: `{type(value).__name__}` is no function")
        if gradient is not None and not callable(gradient):
            raise ConfigError(f"gradient: `{type(gradient).__name__}` is no function")
        if range is not None and not (len(range) == 2 and range[0] <= range[1]):
            raise ConfigError(f"range: {range}; give the smallest and the largest value")
        self.name = name or getattr(value, "__name__", type(value).__name__).strip("<>")
        call, asks = _adapted(value, "value")
        slopes, asks_too = (_differentiated(call), False) if gradient is None else _adapted(gradient, "gradient")
        self.built = _phalanx.PythonUtility(
            lambda *given: _number(call(*given)),
            lambda *given: _table(slopes(*given)),
            range,
            asks or asks_too,
            check,
        )

    def __repr__(self) -> str:
        return f"<Utility {self.name}>"


def _adapted(function: Callable[..., Any], what: str) -> tuple[_Call, bool]:
    """The function with all three arguments, and whether it looks at the agent."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return lambda occupancy, gamma, agent: function(occupancy), False
    names = {p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    needed = [p.name for p in parameters[1:] if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if not parameters or any(name not in ("gamma", "agent") for name in needed):
        raise ConfigError(f"{what}: must take the occupancy, and may ask for `gamma` and `agent`")

    def call(occupancy: Occupancy, gamma: float, agent: int) -> Any:
        given = {"gamma": gamma, "agent": agent}
        return function(occupancy, **{name: given[name] for name in names & given.keys()})

    return call, "agent" in names


def _differentiated(value: _Call) -> _Call:
    """The gradient by JAX or PyTorch, whichever the value is written in; found out when it is first needed."""
    found: list[_Call] = []

    def gradient(occupancy: Occupancy, gamma: float, agent: int) -> Any:
        if not found:
            found.append(_which(value, occupancy, gamma, agent))
        return found[0](occupancy, gamma, agent)

    return gradient


def _which(value: _Call, occupancy: Occupancy, gamma: float, agent: int) -> _Call:
    torch: Any = sys.modules.get("torch")
    jax: Any = sys.modules.get("jax")
    if torch is not None:
        try:
            if isinstance(value(torch.from_numpy(occupancy.copy()), gamma, agent), torch.Tensor):
                return _by_torch(value, torch)
        except (TypeError, ValueError, AttributeError):
            pass
    if jax is not None:
        try:
            if isinstance(value(jax.numpy.asarray(occupancy), gamma, agent), jax.Array):
                return _by_jax(value, jax)
        except (TypeError, ValueError, AttributeError):
            pass
    raise ConfigError("gradient: is missing; give one, or write value with functions of JAX or PyTorch")


def _by_torch(value: _Call, torch: Any) -> _Call:
    def gradient(occupancy: Occupancy, gamma: float, agent: int) -> Any:
        table = torch.tensor(occupancy, dtype=torch.float64, requires_grad=True)
        (slopes,) = torch.autograd.grad(value(table, gamma, agent), table)
        return slopes.numpy()

    return gradient


def _by_jax(value: _Call, jax: Any) -> _Call:
    # In single precision, JAX's own choice, differences of the value could not tell a wrong gradient.
    derivative = jax.grad(lambda table, gamma, agent: value(table, gamma, agent))

    def gradient(occupancy: Occupancy, gamma: float, agent: int) -> Any:
        with _double(jax):
            return np.asarray(derivative(jax.numpy.asarray(occupancy, dtype="float64"), gamma, agent))

    return gradient


def _double(jax: Any) -> Any:
    """Double precision for a while."""
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(True)


def _number(found: Any) -> float:
    array = np.asarray(_detached(found))
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise ConfigError(f"value: gives {array.dtype} of shape {array.shape}; one number is needed")
    return float(array.reshape(()))


def _table(found: Any) -> Occupancy:
    array = np.asarray(_detached(found))
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ConfigError(f"gradient: gives {array.dtype} of shape {array.shape}; a table [states, actions] is needed")
    return np.ascontiguousarray(array, dtype=np.float64)


def _detached(found: Any) -> Any:
    return found.detach() if hasattr(found, "detach") else found
