"""Runs: begun, gone on with, opened again."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any, Unpack

from . import _checks, _phalanx
from . import progress as bars
from ._checks import flag, folder, text
from ._phalanx import ConfigError, Fixed
from .assessment import Assessment, assessed
from .functions import fixed_by
from .hooks import Iteration, hook
from .models import configured
from .own import Own
from .policy import Policy
from .runs import Run
from .settings import Device, EvaluatedSettings, Settings
from .temporary import Temporary
from .utility import Utility
from .world import World

#: A preset's name, a TOML file, a configuration as a dict, or your own world.
Source = str | PathLike[str] | Mapping[str, Any] | World
Progress = bool | Callable[[dict[str, Any]], Any]
Callback = Callable[[Iteration], Any]
#: Bits of a seed that nobody chose: files hold seeds as integers of TOML.
SEED_BITS = 62


def train(
    source: Source | None = None,
    *,
    out: str | PathLike[str] | None = None,
    temporary: bool = False,
    init: Run | str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
    **settings: Unpack[Settings],
) -> Run:
    """Trains a policy, evaluates it on fresh episodes, and returns the run.

    `source` is a preset (see `presets`), a TOML file, a dict or a `World`; without it `world` must be given. All other keywords
    are settings under the names of the configuration file. Dicts change what they name and leave the rest of a section as it
    is; `world`, `objective` and `network` with a `kind` replace the section; lists replace lists. Where a `kind` is wanted,
    `phalanx.World` and `phalanx.Utility` objects may stand. `seed=None` draws a seed, which `run.config` then tells.
    `device="cuda"` trains on a GPU, `device="auto"` does if there is one and enough to do; the processor is the default.

    :param out: folder for the results, new or empty; `runs/<name>-seed<seed>` if not given.
    :param temporary: whether results are in a folder of the system's that is deleted with the run object.
    :param init: a run whose policy to start from.
    :param threads: all cores if not given; results do not depend on it.
    :param progress: `True` shows a bar, `False` nothing, a function is called with a dict now and then; if not given there is
        a bar in notebooks and terminals, and elsewhere a line every ten seconds.
    :param callback: is called with an `Iteration` after every iteration, in the thread that called `train`. If it returns
        `phalanx.STOP` (or `False`), the run stops with a checkpoint: it is returned with `is_finished` false, and `resume` goes
        on with it. What it raises is raised here, after a checkpoint.
    :raises ConfigError: if something given cannot be used; the message begins with its name.
    :raises Interrupted: on Ctrl-C, after the iteration was finished and a checkpoint written; `resume` goes on.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", kappa=2, dual={"kind": "proximal"}, iterations=3, temporary=True)
    >>> run.config["kappa"], run.config["dual"]["kind"]
    (2, 'proximal')
    >>> phalanx.train("synthetic", kapa=2)
    Traceback (most recent call last):
    phalanx.ConfigError: kapa: unknown field `kapa`, expected one of ...
    """
    own, base, named = _prepared(source, settings)
    count = _checks.threads(threads)
    if flag(temporary, "temporary") and out is not None:
        raise ConfigError("temporary: its folder is the system's; leave `out` away")
    keeper = Temporary() if temporary else None
    where = keeper.path / "run" if keeper else None if out is None else folder(out, "out")
    policy = None if init is None else init.path if isinstance(init, Run) else folder(init, "init")
    if policy is not None and not (policy / "policy.safetensors").is_file():
        raise ConfigError(f"init: {str(policy)!r} has no policy")
    config = configured(base, named, own)
    bar = bars.bar(progress, config.iterations)
    watchers = {"progress": bar, "callback": hook(callback, config.iterations, own), "beside": own.beside}
    try:
        path, stopped = _phalanx.train(config, _name(base), where, policy, count, watchers)
    except BaseException:
        # The message may have said how to go on.
        if keeper and (keeper.path / "run" / "checkpoints").is_dir():
            keeper.keep()
        raise
    finally:
        bar.close()
    return Run(path, own, stopped, keeper)


def resume(
    run: Run | str | PathLike[str],
    *,
    world: World | None = None,
    utilities: Iterable[Utility] = (),
    device: Device | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    callback: Callback | None = None,
) -> Run:
    """Goes on with a run that was interrupted. It ends in the same bytes as one that was not.

    `world` and `utilities`: your own, if the run was begun with any; the other arguments are those of `train`.

    :param device: where to go on, `"cpu"`, `"cuda"` or `"auto"`; where the run was begun if not given. Tables and linear models
        end in the same bytes on both, neural networks do not.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", iterations=3, temporary=True)
    >>> phalanx.resume(run).metrics["iteration"].tolist()         # was finished: nothing to do
    [0, 1, 2]
    """
    count = _checks.threads(threads)
    where = None if device is None else text(device, "device")
    path = run.path if isinstance(run, Run) else folder(run, "run").absolute()
    keeper = run._keeper if isinstance(run, Run) else None
    if not (path / "config.toml").is_file():
        raise ConfigError(f"run: {str(run)!r} is no run; it has no config.toml")
    own = run._own if isinstance(run, Run) and world is None else Own(world, utilities)
    own.check_names(path, "phalanx.resume")
    iterations = configured(str(path / "config.toml"), {}, own).iterations
    bar = bars.bar(progress, iterations)
    watchers = {"progress": bar, "callback": hook(callback, iterations, own), "beside": own.beside}
    try:
        stopped = _phalanx.resume(path, own.registry, where, count, watchers)
    finally:
        bar.close()
    return Run(path, own, stopped, keeper)


def load(path: str | PathLike[str], *, world: World | None = None, utilities: Iterable[Utility] = ()) -> Run:
    """Opens a finished run, made here or by the command line. `world` and `utilities`: your own, if it was
    trained with any.

    >>> import os, tempfile, phalanx
    >>> made = phalanx.train("synthetic", iterations=3, out=os.path.join(tempfile.mkdtemp(), "run"))
    >>> phalanx.load(made.path).outcome == made.outcome
    True
    """
    where = folder(path, "path").absolute()
    if not (where / "config.toml").is_file():
        raise ConfigError(f"path: {str(path)!r} is no run; it has no config.toml")
    if not (where / "outcome.json").is_file():
        raise ConfigError(f"path: {str(path)!r} is not finished; phalanx.resume goes on with it")
    # It was checked when it was trained in, and a used environment need not be what it was.
    own = Own(world, utilities, check=False)
    own.check_names(where, "phalanx.load")
    return Run(where, own)


def evaluate(
    source: Source | None = None,
    *,
    policy: str | Policy | Callable[..., Any] = "uniform",
    batched: bool = False,
    episodes: int = 400,
    evaluation_seed: int = 1,
    confidence: float = 0.99,
    threads: int | None = None,
    **settings: Unpack[EvaluatedSettings],
) -> Assessment:
    """Evaluates any policy on fresh episodes, with intervals and verdicts. A run's own is evaluated by `Run.evaluate`.

    :param policy: a scripted policy by name: `uniform`, or one that the world knows (`matching` for wireless, `wave` for
        pistonball); a `Policy`; or a function. It is called at every step with a dict of what agents observe, as in
        `phalanx.env` (in a world of `from_pettingzoo`: as that environment shows it, in single precision; all agents are there, those
        that have left with zeros), and gives a dict with an action, or probabilities of all actions, for every
        agent. Episodes take turns: each call stands for itself.
    :param batched: whether the function takes an array `[episode, agent, number]`, as `phalanx.vector_env` shows it, and gives
        actions `[episode, agent]` or probabilities `[episode, agent, action]`.
    :param episodes: how many.
    :param evaluation_seed: of the episodes; `seed` is a setting, that of the run.
    :param confidence: with which all intervals hold together.

    >>> import phalanx
    >>> phalanx.evaluate("synthetic", episodes=50)
    <Assessment of 50 episodes: 10 safe agents at confidence 0.99>
    >>> def lazy(observations):
    ...     return {agent: 0 for agent in observations}
    >>> phalanx.evaluate("synthetic", policy=lazy)
    <Assessment of 400 episodes: 10 unsafe agents at confidence 0.99>
    """
    own, base, named = _prepared(source, settings)
    config = configured(base, named, own)
    is_batched = flag(batched, "batched")
    if isinstance(policy, Policy) or callable(policy):
        fixed = fixed_by(config, policy, own.adapter, is_batched)
    else:
        fixed = Fixed.scripted(config, text(policy, "policy"))
    return assessed(fixed, episodes, evaluation_seed, confidence, threads, "evaluation_seed")


def config(source: Source | None = None, **settings: Unpack[Settings]) -> dict[str, Any]:
    """A configuration with every setting resolved.

    >>> import phalanx
    >>> phalanx.config("wireless", kappa=2)["policy"]["kind"]
    'linear'
    """
    own, base, named = _prepared(source, settings)
    return tomllib.loads(configured(base, named, own).resolve())


def presets() -> dict[str, str]:
    """What is built in, with a line about each.

    >>> import phalanx
    >>> "pistonball" in phalanx.presets()
    True
    """
    return dict(_phalanx.presets())


def _prepared(source: Source | None, settings: Mapping[str, Any]) -> tuple[Own, Any, dict[str, Any]]:
    """Source and settings with names in place of objects."""
    own = Own()
    settings = dict(settings)
    if isinstance(source, World):
        if "world" in settings:
            raise ConfigError("world: is given twice, also as the source")
        settings["world"], source = source, None
    if settings.get("seed", 0) is None:
        settings["seed"] = secrets.randbits(SEED_BITS)
    named = own.settings(settings)
    if source is None:
        if "world" not in named:
            raise ConfigError("source: is missing; give a preset, a TOML file or a dict, or a world")
        source = {}
    if isinstance(source, Mapping):
        source = own.settings(source)
        if "world" in named:
            world = named.pop("world")
            source["world"] = world if "kind" in world else {**source.get("world", {}), **world}
        return own, source, named
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"source: `{type(source).__name__}`; give a preset's name, a TOML file, a dict or a phalanx.World"
        )
    return own, fspath(source), named


def _name(source: Any) -> str:
    """What the run's folder is called after."""
    if isinstance(source, str):
        return source
    return str(source.get("world", {}).get("kind", "run"))
