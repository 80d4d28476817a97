"""Your own utilities."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _phalanx
from ._checks import flag, text
from ._phalanx import ConfigError
from ._remade import Remade
from .world import interval

#: A table `[states, actions]` of discounted visits; its mass is 1/(1 - gamma).
Occupancy = NDArray[np.float64]
_Call = Callable[[Occupancy, float, int], Any]


class Utility(Remade):
    """A function of one agent's occupancy measure, as an objective or in a constraint.

    `value(occupancy)` is given the table λ[s, a] of discounted visits, whose sum is 1/(1 - γ). `gradient(occupancy)` gives
    its slopes, a table of the same shape; it is compared with differences of `value` before a run begins. Without
    `gradient`, `value` must be written in JAX or PyTorch, which then differentiate it. Both functions may ask for `gamma` and
    `agent` by adding parameters of these names.

    >>> import numpy as np, phalanx
    >>> def share(occupancy, gamma):                       # time in state 1, as a share
    ...     return (1 - gamma) * occupancy[1].sum()
    >>> def slope(occupancy, gamma):
    ...     return (1 - gamma) * np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> run = phalanx.train(
    ...     "synthetic", iterations=5, temporary=True,
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
        ends = None if range is None else interval(range, "range")
        self.name = (
            getattr(value, "__name__", type(value).__name__).strip("<>") if name is None else text(name, "name")
        )
        call, asks = _adapted(value, "value")
        if gradient is None:
            both = _Differentiated(call)
            call, slopes, asks_too = both.value, both.gradient, False
        else:
            slopes, asks_too = _adapted(gradient, "gradient")
        self.built = _phalanx.PythonUtility(
            lambda *given: _number(call(*given)),
            lambda *given: _table(slopes(*given)),
            ends,
            asks or asks_too,
            flag(check, "check"),
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


class _Differentiated:
    """A value that JAX or PyTorch differentiate, whichever it is written in; found out when it is first needed."""

    def __init__(self, value: _Call) -> None:
        self._given = value
        self._found: tuple[_Call, _Call] | None = None

    def value(self, *given: Any) -> Any:
        return self._functions(*given)[0](*given)

    def gradient(self, *given: Any) -> Any:
        return self._functions(*given)[1](*given)

    def _functions(self, *given: Any) -> tuple[_Call, _Call]:
        if self._found is None:
            self._found = _written_in(self._given, *given)
        return self._found


def _written_in(value: _Call, occupancy: Occupancy, gamma: float, agent: int) -> tuple[_Call, _Call]:
    torch: Any = sys.modules.get("torch")
    jax: Any = sys.modules.get("jax")
    refused = ""
    if torch is not None:
        try:
            table = torch.tensor(occupancy, requires_grad=True)
            if getattr(value(table, gamma, agent), "requires_grad", False):
                return _by_torch(value, torch)
        except (TypeError, ValueError, RuntimeError, AttributeError) as error:
            refused += f"; PyTorch: {str(error).splitlines()[0]}"
    if jax is not None:
        try:
            # Functions of NumPy take arrays of JAX, too, but not what stands for them while a function is looked through.
            jax.make_jaxpr(value, static_argnums=(1, 2))(occupancy, gamma, agent)
            return _by_jax(value, jax)
        except (TypeError, ValueError, AttributeError) as error:
            refused += f"; JAX: {str(error).splitlines()[0]}"
    raise ConfigError(f"gradient: is missing; give one, or write value with functions of JAX or PyTorch{refused}")


def _by_torch(function: _Call, torch: Any) -> tuple[_Call, _Call]:
    def value(occupancy: Occupancy, gamma: float, agent: int) -> Any:
        return function(torch.from_numpy(occupancy), gamma, agent)

    def gradient(occupancy: Occupancy, gamma: float, agent: int) -> Any:
        table = torch.tensor(occupancy, dtype=torch.float64, requires_grad=True)
        (slopes,) = torch.autograd.grad(function(table, gamma, agent), table)
        return slopes

    return value, gradient


def _by_jax(function: _Call, jax: Any) -> tuple[_Call, _Call]:
    # In single precision, JAX's own choice, differences of the value could not tell a wrong gradient. Agents are known when
    # it is compiled: they are looked up in arrays of any kind.
    def compiled(of: Any) -> _Call:
        inner = jax.jit(of, static_argnums=(1, 2))

        def call(occupancy: Occupancy, gamma: float, agent: int) -> Any:
            with _double(jax):
                return np.asarray(inner(jax.numpy.asarray(occupancy, dtype="float64"), gamma, agent))

        return call

    return compiled(function), compiled(jax.grad(function))


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
        raise ConfigError(
            f"gradient: gives {array.dtype} of shape {array.shape}; a table [states, actions] is needed"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def _detached(found: Any) -> Any:
    return found.detach() if hasattr(found, "detach") else found
