"""A run: what training left behind, and its policy."""

from __future__ import annotations

import json
import tomllib
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _checks
from ._checks import whole
from ._phalanx import ConfigError, Fixed
from .assessment import Assessment, assessed
from .own import Own
from .policy import Policy
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._parallel import WorldEnv


class Run:
    """A finished run; `phalanx.load` opens one again.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", iterations=10, out=getfixture("tmp_path") / "run")
    >>> run.config["world"]["n"], len(run.metrics["return"]), run.outcome["seed"]
    (10, 10, 1)
    >>> sorted(run.agents)
    ['agent', 'bound', 'constraint', 'dual', 'threshold', 'value', 'violation']
    """

    def __init__(self, path: Path, own: Own) -> None:
        #: The run's folder.
        self.path = path
        self._own = own

    @cached_property
    def config(self) -> dict[str, Any]:
        """Every setting, resolved."""
        path = self.path / "config.toml"
        try:
            return tomllib.loads(path.read_text())
        except ValueError as error:
            raise ConfigError(f"path: {path} is damaged: {error}") from None

    @cached_property
    def outcome(self) -> dict[str, Any]:
        """The closing evaluation: return, objective, violations, and what it took."""
        path = self.path / "outcome.json"
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise ConfigError(f"path: {path} is damaged: {error}") from None
        return found

    @cached_property
    def metrics(self) -> Table:
        """One row per iteration."""
        return Table.read(self.path / "metrics.csv")

    @cached_property
    def timings(self) -> Table:
        """Seconds by stage, one row per iteration."""
        return Table.read(self.path / "timings.csv")

    @cached_property
    def agents(self) -> Table:
        """One row per agent and constraint, from the closing evaluation; in a large network the worst."""
        return Table.read(self.path / "agents.csv")

    @cached_property
    def returns(self) -> Table:
        """Return and objective of every agent; in a large network of the worst."""
        return Table.read(self.path / "returns.csv")

    @cached_property
    def summary(self) -> Table:
        """Quantiles over all agents."""
        return Table.read(self.path / "agents-summary.csv")

    @cached_property
    def _fixed(self) -> Fixed:
        return Fixed.of_run(self.path, self._own.registry)

    @cached_property
    def policy(self) -> Policy:
        """The trained policy."""
        return Policy(self._fixed, self._own.adapter)

    @cached_property
    def multipliers(self) -> list[NDArray[np.float64]]:
        """μ of every agent, one number per constraint."""
        return self._fixed.multipliers()

    def evaluate(
        self, episodes: int = 400, *, seed: int = 1, confidence: float = 0.99, threads: int | None = None
    ) -> Assessment:
        """Evaluates the policy on fresh episodes: is every agent safe, and how sure is that?"""
        return assessed(self._fixed, episodes, seed, confidence, threads)

    def occupancy(
        self, episodes: int = 400, *, seed: int = 1, threads: int | None = None
    ) -> list[NDArray[np.float64]]:
        """λ of every agent under the policy, `[states, actions]`, estimated on fresh episodes."""
        return self._fixed.occupancy(whole(episodes, "episodes", 1), whole(seed, "seed"), _checks.threads(threads))

    def env(self, *, max_cycles: int | None = None, render_mode: str | None = None) -> WorldEnv:
        """Its world as an environment of PettingZoo, in which its policy can act."""
        from .envs import env

        cycles = self.config["horizon"] if max_cycles is None else max_cycles
        source = self.config if self._own.world is None else self._own.world
        return env(source, kappa=self.config["kappa"], max_cycles=cycles, render_mode=render_mode)

    def plot(self, *, show_agents: bool = True) -> Figure:
        """Objective, return and violations over iterations, and where every agent stands (needs matplotlib)."""
        from .plots import figure

        return figure(self, show_agents=show_agents)

    def __reduce__(self) -> Any:
        from .training import load

        if not self._own.is_empty:
            raise TypeError("a run with a world or a utility of one's own cannot be pickled; pickle its path")
        return load, (self.path,)

    def __repr__(self) -> str:
        told = self.outcome
        earned = f"return {told['return']:.4g}, " if told["return"] is not None else ""
        return (
            f"<Run {str(self.path)!r}: {earned}objective {told['objective']:.4g}, "
            f"violation {told['violation_total']:.3g}>"
        )

    def _repr_html_(self) -> str:
        names = ["return", "objective", "violation_total", "violation_max", "iterations", "wall_s"]
        rows = "".join(f"<tr><td>{name}</td><td>{_shown(self.outcome[name])}</td></tr>" for name in names)
        return f"<p><code>{escape(str(self.path))}</code></p><table>{rows}</table>"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
