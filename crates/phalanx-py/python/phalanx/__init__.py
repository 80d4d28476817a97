"""Safe policies for networks of agents."""

from ._phalanx import ConfigError, Interrupted, TrainingError
from .envs import env, parallel_env, vector_env

__all__ = ["ConfigError", "Interrupted", "TrainingError", "env", "parallel_env", "vector_env"]
