"""A run: what training left behind, and its policy."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _checks
from ._checks import near, whole
from ._phalanx import ConfigError, Fixed
from .assessment import Assessment, assessed
from .own import Own
from .policy import Policy
from .tables import Table
from .temporary import Temporary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._parallel import WorldEnv
    from .settings import Device, LinkSettings, NetworkSettings, WorldSettings


class Run:
    """A finished run, or one that a callback has stopped; `phalanx.load` opens a finished one again.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", iterations=10, temporary=True)
    >>> run.config["world"]["n"], len(run.metrics["return"]), run.outcome["seed"]
    (10, 10, 1)
    >>> sorted(run.agents)
    ['agent', 'bound', 'constraint', 'dual', 'threshold', 'value', 'violation']
    """

    def __init__(
        self, path: Path, own: Own, stopped: Fixed | None = None, keeper: Temporary | None = None
    ) -> None:
        """`stopped`: the policy that it was stopped with. `keeper` deletes the folder once the run is gone."""
        #: The run's folder, from the root: it stays the same if the working directory changes.
        self.path = path.absolute()
        self._own = own
        self._stopped, self._keeper = stopped, keeper

    @property
    def is_finished(self) -> bool:
        """Whether all iterations are done and the policy is evaluated. Of a run that a callback stopped there are metrics
        and the policy; `phalanx.resume` goes on with it."""
        return (self.path / "outcome.json").is_file()

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
        if not self.is_finished:
            raise ConfigError(f"outcome: {near(self.path)!r} is not finished; phalanx.resume goes on with it")
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
        """One row per agent and constraint, from the closing evaluation; in a large graph the worst."""
        return Table.read(self.path / "agents.csv")

    @cached_property
    def returns(self) -> Table:
        """Return and objective of every agent; in a large graph of the worst."""
        return Table.read(self.path / "returns.csv")

    @cached_property
    def summary(self) -> Table:
        """Quantiles over all agents."""
        return Table.read(self.path / "agents-summary.csv")

    @cached_property
    def _fixed(self) -> Fixed:
        return Fixed.of_run(self.path, self._own.registry) if self._stopped is None else self._stopped

    @cached_property
    def policy(self) -> Policy:
        """The trained policy."""
        return Policy(self._fixed, self._own)

    @cached_property
    def multipliers(self) -> list[NDArray[np.float64]]:
        """μ of every agent, one number per constraint."""
        return self._fixed.multipliers()

    def evaluate(
        self,
        episodes: int = 400,
        *,
        seed: int = 1,
        confidence: float = 0.99,
        threads: int | None = None,
        device: Device = "cpu",
        evaluation_seed: int | None = None,
        links: LinkSettings | Mapping[str, Any] | None = None,
        world: WorldSettings | Mapping[str, Any] | None = None,
        network: NetworkSettings | Mapping[str, Any] | None = None,
    ) -> Assessment:
        """Evaluates the policy on fresh episodes: is every agent safe, and how sure is that? `seed` is that of the episodes;
        it may also be given as `evaluation_seed`, its name in `phalanx.evaluate`. `links` (`{"loss": 0.1}`), `world`
        (`{"rows": 20, "columns": 20}`) and `network` are keys of these sections in place of the run's own; a policy that agents
        share also acts on another graph. `device="cuda"` simulates and counts on a GPU, `device="auto"` does if there is one and
        enough to do."""
        chosen = _one_seed(seed, evaluation_seed)
        sections = {"links": links, "world": world, "network": network}
        changed = {name: keys for name, keys in sections.items() if keys is not None}
        fixed = self._elsewhere(changed) if changed else self._fixed
        return assessed(fixed, episodes, chosen, confidence, threads, device=device)

    def _elsewhere(self, changed: Mapping[str, Mapping[str, Any]]) -> Fixed:
        """Its policy with other settings around it, by section."""
        for section, keys in changed.items():
            if not isinstance(keys, Mapping):
                example = {"links": {"loss": 0.1}, "world": {"n": 20}, "network": {"kind": "ring"}}[section]
                raise ConfigError(f"{section}: `{type(keys).__name__}` is no dict; give one such as {example}")

        def plain(value: Any) -> Any:
            return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)

        # Numbers and lists of them are written alike in JSON and TOML.
        sets = [
            (f"{section}.{key}", json.dumps(value, default=plain))
            for section, keys in changed.items()
            for key, value in keys.items()
        ]
        return Fixed.of_run(self.path, self._own.registry, sets)

    def occupancy(
        self,
        episodes: int = 400,
        *,
        seed: int = 1,
        threads: int | None = None,
        evaluation_seed: int | None = None,
    ) -> list[NDArray[np.float64]]:
        """λ of every agent under the policy, `[states, actions]`, estimated on fresh episodes."""
        chosen = whole(_one_seed(seed, evaluation_seed), "seed")
        return self._fixed.occupancy(whole(episodes, "episodes", 1), chosen, _checks.threads(threads))

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
            raise TypeError("a run with your own world or utility cannot be pickled; pickle its path")
        if self._keeper is not None or not self.is_finished:
            raise TypeError("a run that is temporary or not finished cannot be pickled; pickle its policy")
        return load, (self.path,)

    def __repr__(self) -> str:
        if not self.is_finished:
            return f"<Run {near(self.path)!r}: stopped after {len(self.metrics['iteration'])} iterations>"
        told = self.outcome
        earned = f"return {told['return']:.4g}, " if told["return"] is not None else ""
        return (
            f"<Run {near(self.path)!r}: {earned}objective {told['objective']:.4g}, "
            f"violation {told['violation_total']:.3g}>"
        )

    def _repr_html_(self) -> str:
        if not self.is_finished:
            return f"<p>{escape(repr(self)[1:-1])}</p>"
        names = ["return", "objective", "violation_total", "violation_max", "iterations", "wall_s"]
        rows = "".join(f"<tr><td>{name}</td><td>{_shown(self.outcome[name])}</td></tr>" for name in names)
        return f"<p><code>{escape(near(self.path))}</code></p><table>{rows}</table>"


def _one_seed(seed: int, evaluation_seed: int | None) -> int:
    return seed if evaluation_seed is None else whole(evaluation_seed, "evaluation_seed")


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
