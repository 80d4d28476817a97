"""A function that is called after every iteration, sees the run, and may stop it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from . import _phalanx
from ._phalanx import ConfigError, Fixed
from .assessment import Assessment, assessed
from .own import Own
from .policy import Policy
from .settings import Device


class _Answer(enum.Enum):
    STOP = "stop"

    def __repr__(self) -> str:
        return "phalanx.STOP"


#: What a callback returns to stop the run after this iteration.
STOP: Final = _Answer.STOP


class Iteration:
    """An iteration that has just ended, as a `callback` sees it.

    >>> import phalanx
    >>> def callback(info):
    ...     if info.iteration == 4:                        # counted from 0, as in metrics["iteration"]
    ...         return phalanx.STOP
    >>> run = phalanx.train("synthetic", iterations=100, callback=callback, temporary=True)
    >>> run.is_finished, len(run.metrics["iteration"])
    (False, 5)
    """

    def __init__(self, found: _phalanx.Iteration, iterations: int, own: Own) -> None:
        self._found, self._own = found, own
        self._fixed: Fixed | None = None
        #: Its row of `Run.metrics`, but for traffic by kind: `iteration`, `return`, `objective`, `violation_total`, …
        self.metrics: dict[str, Any] = found.metrics()
        #: Its number, from 0.
        self.iteration: int = self.metrics["iteration"]
        #: How many the run is to have.
        self.iterations = iterations
        #: The run's folder.
        self.run: Path = found.path

    def _policy(self) -> Fixed:
        if self._fixed is None:
            self._fixed = self._found.fixed()
        return self._fixed

    def policy(self) -> Policy:
        """The policy as it is now, which later iterations do not change. It is copied when it is asked for; ask while the
        callback is being called."""
        return Policy(self._policy(), self._own)

    def evaluate(
        self,
        episodes: int = 400,
        *,
        seed: int = 1,
        confidence: float = 0.99,
        threads: int | None = None,
        device: Device = "cpu",
    ) -> Assessment:
        """Evaluates the policy as it is now on fresh episodes, as `Run.evaluate` does. Training does not notice."""
        return assessed(self._policy(), episodes, seed, confidence, threads, device=device)

    def __repr__(self) -> str:
        return f"<Iteration {self.iteration} of {self.iterations}: objective {self.metrics['objective']:.4g}>"


def hook(
    callback: Callable[[Iteration], Any] | None, iterations: int, own: Own
) -> Callable[[_phalanx.Iteration], bool] | None:
    """What the library calls: whether to stop."""
    if callback is None:
        return None
    if not callable(callback):
        raise ConfigError(
            f"callback: `{type(callback).__name__}` is no function; give one that takes an iteration"
        )

    def call(found: _phalanx.Iteration) -> bool:
        said = callback(Iteration(found, iterations, own))
        return said is STOP or said is False

    return call
