"""Everything exact about small models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from . import _phalanx
from ._checks import mapping
from ._phalanx import ConfigError


def exact(model: Mapping[str, Any] | str | PathLike[str], **settings: Any) -> dict[str, Any]:
    """Occupancies, Q-functions, gradients, stationarity, decay constants and certificates of a small model, without sampling.

    `model` is a JSON file, or a dict: a model (`n`, `gamma`, `state_sizes`, `action_sizes`, `edges`, `parents`,
    `transition`, `rho`, `f`, `g`; `World.model` makes the part about dynamics), or one that holds it as `model` beside
    `theta`, `mu`, `kappa`, `kappa_q`, `mu_bar`, `box`, `estimator`, `algorithm`, which may also be given as keywords. Tables are
    flat or nested lists, or arrays. Numbers come back as arrays where they are of one shape, else as lists of arrays.

    >>> import phalanx
    >>> model = {
    ...     "n": 1, "gamma": 0.5, "state_sizes": [2], "action_sizes": [2], "edges": [], "parents": [[0]],
    ...     "transition": [[1, 0, 0, 1, 1, 0, 0, 1]],       # the action is the next state
    ...     "rho": {"kind": "product", "local": [[1, 0]]},
    ...     "f": [{"kind": "linear", "r": [0, 0, 1, 1]}], "g": [[]],
    ... }
    >>> found = phalanx.exact(model)
    >>> float(found["F"]), found["lambda"].tolist()
    (0.5, [[0.75, 0.75, 0.25, 0.25]])
    """
    if isinstance(model, str | PathLike):
        path = Path(fspath(model))
        try:
            given = json.loads(path.read_text())
        except OSError as error:
            raise ConfigError(f"model: {path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ConfigError(f"model: {path} is no JSON: {error}") from None
    elif isinstance(model, Mapping):
        given = dict(model)
    else:
        raise ConfigError(f"model: `{type(model).__name__}`; give a dict or a JSON file")
    given = mapping(mapping(given, "model").get("input", given), "input")
    if "model" not in given:
        given = {"model": given}
    given = {**given, **settings}
    mapping(given["model"], "model")
    tables = ("transition", "f", "g")
    inner = {key: _flat(value) if key in tables else value for key, value in given["model"].items()}
    given["model"] = inner
    try:
        text = json.dumps(given, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"model: {error}") from None
    found: dict[str, Any] = json.loads(_phalanx.exact(text))
    return {key: _arrays(value) for key, value in found.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"`{type(value).__name__}` is neither a number nor a list nor an array")


def _flat(value: Any) -> Any:
    """Tables in the file are flat; arrays may have their natural shape."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return [_flat(row) for row in value] if value.ndim == 2 else [row.ravel().tolist() for row in value]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, list | tuple):
        return [row.ravel().tolist() if isinstance(row, np.ndarray) else _flat(row) for row in value]
    if isinstance(value, Mapping):
        return {
            key: entry.ravel().tolist() if isinstance(entry, np.ndarray) else entry for key, entry in value.items()
        }
    return value


def _arrays(value: Any) -> Any:
    """Lists of numbers as arrays."""
    if isinstance(value, dict):
        return {key: _arrays(entry) for key, entry in value.items()}
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
        if array.dtype.kind in "fiu":
            return array
    except ValueError:
        pass
    return [_arrays(entry) for entry in value]
