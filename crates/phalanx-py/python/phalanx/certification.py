"""Policies of which every constraint is known to hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from . import _checks, _phalanx
from ._checks import folder, real, whole
from ._phalanx import ConfigError
from .models import configured
from .own import Own
from .runs import Run
from .settings import Settings
from .training import Source, _prepared
from .utility import Utility
from .world import World


@dataclass(frozen=True)
class Certification:
    """How a certification ended.

    :ivar path: its folder, with `certificate.json`, a page and the policy if it succeeded, and the runs of all attempts.
    :ivar report: everything, as `phalanx certify --json` prints it: `result` is `certified`, `infeasible` or `not_met`.
    """

    path: Path
    report: dict[str, Any]

    @property
    def is_certified(self) -> bool:
        """Whether every constraint holds, with the confidence that was asked for."""
        return bool(self.report["result"] == "certified")

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The certificate, if there is one."""
        return self.report.get("certificate")

    def __repr__(self) -> str:
        return f"<Certification: {self.report['result'].replace('_', ' ')}>"


def certify(
    source: Source | Run | None = None,
    *,
    out: str | PathLike[str],
    confidence: float = 0.99,
    max_attempts: int = 5,
    episodes: int | None = None,
    judge_seed: int = 1,
    threads: int | None = None,
    **settings: Unpack[Settings],
) -> Certification:
    """Trains until every constraint of every agent is judged to hold, on episodes that nothing has used before.

    `source` and settings are those of `train`; a `Run` is judged as it is, and trained on if it does not pass.

    :param out: folder for certificate, policy and attempts, new or empty.
    :param confidence: with which all constraints hold.
    :param max_attempts: trainings before it is given up.
    :param episodes: that the first attempt is judged on; as many as agents and constraints ask for if not given.
    :param judge_seed: of the episodes that judge.

    >>> import os, tempfile, phalanx
    >>> where = os.path.join(tempfile.mkdtemp(), "certified")
    >>> made = phalanx.certify("synthetic", out=where, constraint=[{"kind": "state_entropy", "at_least": 0.1}],
    ...                        iterations=100, episodes=500)
    >>> made.is_certified
    True
    >>> phalanx.check_certificate(os.path.join(where, "certificate.json"))["repeated"]
    True
    """
    where = folder(out, "out").absolute()
    wanted: dict[str, Any] = {
        "confidence": real(confidence, "confidence"),
        "max_attempts": whole(max_attempts, "max_attempts", 1, 10_000),
        "episodes": None if episodes is None else whole(episodes, "episodes", 3, 2**31),
        "seed": whole(judge_seed, "judge_seed", 0, 2**40),
        "out": where,
    }
    count = _checks.threads(threads)
    if isinstance(source, Run):
        if settings:
            raise ConfigError(f"{next(iter(settings))}: a run has its own settings")
        told = _phalanx.certify(None, source.path, source._own.registry, wanted, count)
    else:
        own, base, named = _prepared(source, settings)
        told = _phalanx.certify(configured(base, named, own), None, own.registry, wanted, count)
    return Certification(where, json.loads(told))


def check_certificate(
    path: str | PathLike[str],
    *,
    fresh: int | None = None,
    world: World | None = None,
    utilities: Iterable[Utility] = (),
    threads: int | None = None,
) -> dict[str, Any]:
    """Repeats the episodes of a certificate and compares every number; with `fresh`, a seed, judges on new ones instead.

    Returns what was found: `holds`, `episodes`, `seed`, `repeated` and the constraints that `failed`. `world` and `utilities`:
    your own, if the policy was trained with any.

    :raises ConfigError: if the certificate or its policy was changed, or its episodes give other numbers.

    >>> import phalanx
    >>> phalanx.check_certificate("nowhere.json")
    Traceback (most recent call last):
    phalanx.ConfigError: nowhere.json: ...
    """
    seed = None if fresh is None else whole(fresh, "fresh")
    own = Own(world, utilities)
    told = _phalanx.check_certificate(folder(path, "path"), seed, own.registry, _checks.threads(threads))
    found: dict[str, Any] = json.loads(told)
    return found
