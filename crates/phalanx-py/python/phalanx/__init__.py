"""Safe policies for many agents on a graph.

Many agents live on a graph; each sees and talks to its neighbourhood only. Together they maximise the mean of local
*general utilities*, differentiable functions of an agent's own discounted occupancy measure, and each keeps its own
constraints, which are general utilities too.

>>> import phalanx
>>> run = phalanx.train("synthetic", iterations=20, seed=3, temporary=True)
>>> run.metrics["objective"].shape
(20,)
>>> run.evaluate(episodes=50).is_safe
True

- `train`, `resume`, `load`, `evaluate`, `config`, `presets`: runs, with the settings of configuration files as keywords.
- `certify`, `check_certificate`: policies of which every constraint is known to hold.
- `export`: a policy for other programs, as ONNX, JSON or C.
- `env`, `vector_env`: the built-in worlds as environments of PettingZoo, one or many copies.
- `from_pettingzoo`: any parallel environment of PettingZoo, with a graph, as a world to train in.
- `World`, `Utility`: your own world and utility.
- `exact`: everything exact about a small model.
"""

import atexit as _atexit

from . import _phalanx
from ._phalanx import ConfigError, Interrupted, TrainingError
from .assessment import Assessment
from .certification import Certification, certify, check_certificate
from .environment import from_pettingzoo
from .envs import VectorEnv, env, parallel_env, vector_env
from .exactly import exact
from .exporting import export
from .hooks import STOP, Iteration
from .policy import Policy
from .runs import Run
from .settings import Settings
from .tables import Table
from .training import config, evaluate, load, presets, resume, train
from .utility import Utility
from .world import World

__version__: str = _phalanx.version

__all__ = [
    "STOP",
    "Assessment",
    "Certification",
    "ConfigError",
    "Interrupted",
    "Iteration",
    "Policy",
    "Run",
    "Settings",
    "Table",
    "TrainingError",
    "Utility",
    "VectorEnv",
    "World",
    "certify",
    "check_certificate",
    "config",
    "env",
    "evaluate",
    "exact",
    "export",
    "from_pettingzoo",
    "load",
    "parallel_env",
    "presets",
    "resume",
    "train",
    "vector_env",
]


def __dir__() -> list[str]:
    """What is public; modules are not, though they can be imported."""
    return [*__all__, "__doc__", "__version__"]


# Threads of the library must not ask for an interpreter that is being shut down.
_atexit.register(_phalanx.finish_work)
