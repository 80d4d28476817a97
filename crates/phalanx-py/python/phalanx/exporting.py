"""Policies for other programs."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from . import _checks, _phalanx
from ._checks import folder, real, text, whole
from .runs import Run
from .training import load


def export(
    run: Run | str | PathLike[str],
    *,
    to: str,
    out: str | PathLike[str],
    episodes: int = 400,
    seed: int = 1,
    confidence: float = 0.99,
    threads: int | None = None,
) -> dict[str, Any]:
    """Writes the policy of a run for other programs, with a card that says what it is worth.

    Returns what was written: the folder `out`, the names of its `files`, and the `card`.

    :param run: a `Run`, or its folder.
    :param to: `onnx`, `json` or `c`.
    :param out: folder: new, empty, or that of an earlier export to the same format.
    :param episodes: that the card's verdicts rest on.
    :param seed: of these episodes.
    :param confidence: of all verdicts together.

    >>> import os, tempfile, phalanx
    >>> run = phalanx.train("synthetic", iterations=3, temporary=True)
    >>> made = phalanx.export(run, to="json", out=os.path.join(tempfile.mkdtemp(), "policy"))
    >>> made["files"]
    ['policy.json', 'act.py', 'card.json', 'card.md']
    """
    opened = run if isinstance(run, Run) else load(run)
    wanted = {
        "to": text(to, "to"),
        "out": folder(out, "out").absolute(),
        "episodes": whole(episodes, "episodes", 3, 2**31),
        "seed": whole(seed, "seed"),
        "confidence": real(confidence, "confidence"),
    }
    told = _phalanx.export(opened._fixed, wanted, _checks.threads(threads))
    found: dict[str, Any] = json.loads(told)
    return found
