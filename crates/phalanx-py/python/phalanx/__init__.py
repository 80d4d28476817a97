"""Safe policies for networks of agents."""

from ._phalanx import ConfigError, Interrupted, TrainingError

__all__ = ["ConfigError", "Interrupted", "TrainingError"]
