"""Runs: begun, gone on with, opened again."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any

from . import _checks, _phalanx
from . import progress as bars
from ._checks import folder, text
from ._phalanx import ConfigError, Configuration, Fixed
from .assessment import Assessment, assessed
from .own import Own
from .runs import Run
from .utility import Utility
from .world import World

#: A preset's name, a TOML file, or a configuration as a dict.
Source = str | PathLike[str] | Mapping[str, Any]
Progress = bool | Callable[[dict[str, Any]], Any]


def train(
    source: Source | None = None,
    *,
    out: str | PathLike[str] | None = None,
    init: Run | str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Trains a policy, evaluates it on fresh episodes, and returns the run.

    `source` is a preset (see `presets`), a TOML file or a dict; without it `world` must be given. All other keywords are
    settings under the names of the configuration file. Dicts change what they name and leave the rest of a section as it
    is; `world`, `objective` and `network` with a `kind` replace the section; lists replace lists. Where a `kind` is wanted,
    `phalanx.World` and `phalanx.Utility` objects may stand.

    :param out: folder for the results, new or empty; `runs/<name>-seed<seed>` if not given.
    :param init: a run whose policy to start from.
    :param threads: all cores if not given; results do not depend on it.
    :param progress: `True` shows a bar, `False` none, a function is called with a dict now and then; if not given there is a
        bar in notebooks and terminals.
    :raises ConfigError: if something given cannot be used; the message begins with its name.
    :raises Interrupted: on Ctrl-C, after the iteration was finished and a checkpoint written; `resume` goes on.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", kappa=2, dual={"kind": "proximal"}, iterations=3, out=getfixture("tmp_path") / "run")
    >>> run.config["kappa"], run.config["dual"]["kind"]
    (2, 'proximal')
    >>> phalanx.train("synthetic", kapa=2)
    Traceback (most recent call last):
    phalanx.ConfigError: kapa: unknown field `kapa`, expected one of ...
    """
    own, base, named = _prepared(source, settings)
    count = _checks.threads(threads)
    where = None if out is None else folder(out, "out")
    policy = None if init is None else init.path if isinstance(init, Run) else folder(init, "init")
    if policy is not None and not (policy / "policy.safetensors").is_file():
        raise ConfigError(f"init: {str(policy)!r} has no policy")
    config = Configuration(base, named, own.registry)
    bar = bars.bar(progress, config.iterations)
    try:
        path = _phalanx.train(config, _name(base), where, policy, count, bar)
    finally:
        bar.close()
    return Run(path, own)


def resume(
    run: Run | str | PathLike[str],
    *,
    world: World | None = None,
    utilities: Iterable[Utility] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Goes on with a run that was interrupted. It ends in the same bytes as one that was not.

    `world` and `utilities` are those of one's own that the run was begun with, if any.

    >>> import phalanx
    >>> run = phalanx.train("synthetic", iterations=3, out=getfixture("tmp_path") / "run")
    >>> phalanx.resume(run.path).metrics["iteration"]         # was finished: nothing to do
    array([0, 1, 2])
    """
    count = _checks.threads(threads)
    path = run.path if isinstance(run, Run) else folder(run, "run")
    own = run._own if isinstance(run, Run) and world is None else Own(world, utilities)
    if not (path / "config.toml").is_file():
        raise ConfigError(f"run: {str(path)!r} is no run; it has no config.toml")
    bar = bars.bar(progress, Configuration(str(path / "config.toml"), {}, own.registry).iterations)
    try:
        _phalanx.resume(path, own.registry, count, bar)
    finally:
        bar.close()
    return Run(path, own)


def load(path: str | PathLike[str], *, world: World | None = None, utilities: Iterable[Utility] = ()) -> Run:
    """Opens a finished run, made here or by the command line.

    >>> import phalanx
    >>> made = phalanx.train("synthetic", iterations=3, out=getfixture("tmp_path") / "run")
    >>> phalanx.load(made.path).outcome == made.outcome
    True
    """
    where = folder(path, "path")
    if not (where / "config.toml").is_file():
        raise ConfigError(f"path: {str(where)!r} is no run; it has no config.toml")
    if not (where / "outcome.json").is_file():
        raise ConfigError(f"path: {str(where)!r} is not finished; phalanx.resume goes on with it")
    return Run(where, Own(world, utilities))


def evaluate(
    source: Source | None = None,
    *,
    policy: str = "uniform",
    episodes: int = 400,
    evaluation_seed: int = 1,
    confidence: float = 0.99,
    threads: int | None = None,
    **settings: Any,
) -> Assessment:
    """Evaluates a scripted policy: `uniform`, or one that the world knows (`matching` for wireless, `wave` for pistonball).
    A trained one is evaluated by `Run.evaluate`.

    >>> import phalanx
    >>> phalanx.evaluate("synthetic", episodes=50)
    <Assessment of 50 episodes: 10 safe agents at confidence 0.99>
    """
    own, base, named = _prepared(source, settings)
    fixed = Fixed.scripted(Configuration(base, named, own.registry), text(policy, "policy"))
    return assessed(fixed, episodes, evaluation_seed, confidence, threads, "evaluation_seed")


def config(source: Source | None = None, **settings: Any) -> dict[str, Any]:
    """A configuration with every setting resolved.

    >>> import phalanx
    >>> phalanx.config("wireless", kappa=2)["policy"]["kind"]
    'linear'
    """
    own, base, named = _prepared(source, settings)
    return tomllib.loads(Configuration(base, named, own.registry).resolve())


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
        raise ConfigError(f"source: `{type(source).__name__}`; give a preset's name, a TOML file or a dict")
    return own, fspath(source), named


def _name(source: Any) -> str:
    """What the run's folder is called after."""
    if isinstance(source, str):
        return source
    return str(source.get("world", {}).get("kind", "run"))
