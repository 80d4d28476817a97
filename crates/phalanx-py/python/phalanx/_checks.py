"""Arguments that cannot be used, named."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from ._phalanx import ConfigError

#: Letters of a value that a message repeats.
MOST_SHOWN = 80


def shown(value: Any) -> str:
    """A value in a message: what it calls itself, in one line and not too long."""
    try:
        said = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001
        # Whole numbers of many digits, among others, refuse.
        said = f"<{type(value).__name__}>"
    half = MOST_SHOWN // 2
    return said if len(said) <= MOST_SHOWN else f"{said[:half]}…{said[-half:]}"


def whole(value: Any, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number from `least` to `most`."""
    try:
        # True is an index, but hardly ever a number of something.
        number = operator.index(None if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{name}: {shown(value)} is no whole number") from None
    if not least <= number <= most:
        raise ConfigError(f"{name}: {shown(number)}; allowed are {least} to {most}")
    return number


def real(value: Any, name: str) -> float:
    """A number."""
    try:
        # float() also reads text.
        return float(None if isinstance(value, str | bytes) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{name}: {shown(value)} is no number") from None


def threads(value: Any) -> int | None:
    """A number of threads, or none for all cores."""
    return None if value is None else whole(value, "threads", 1, 1024)


def folder(value: Any, name: str) -> Path:
    """A path."""
    if not isinstance(value, str | PathLike) or isinstance(fspath(value), bytes):
        raise ConfigError(f"{name}: {shown(value)} is no path")
    if not fspath(value) or "\0" in fspath(value):
        raise ConfigError(f"{name}: {shown(fspath(value))} is no path")
    return Path(fspath(value))


def near(path: Path) -> str:
    """A path as people would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def mapping(value: Any, name: str) -> Mapping[Any, Any]:
    """A dict."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name}: `{type(value).__name__}`; give a dict")
    return value


def names(value: Mapping[Any, Any], name: str) -> None:
    """Whether all keys are names."""
    for key in value:
        if not isinstance(key, str):
            raise ConfigError(f"{name}: the key {shown(key)} is no string")


def listed(value: Any, name: str) -> list[Any]:
    """A list."""
    try:
        # Arrays without an axis say that they can be gone through.
        return list(None if isinstance(value, str | bytes) else value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{name}: `{type(value).__name__}`; give a list") from None


def flag(value: Any, name: str) -> bool:
    """True or False."""
    # Arrays compare entry by entry: types are looked at first.
    if not isinstance(value, int | np.bool_) or value not in (True, False):
        raise ConfigError(f"{name}: {shown(value)}; True or False is needed")
    return bool(value)


def array(value: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of any kind."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from None


def text(value: Any, name: str) -> str:
    """A name."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name}: {shown(value)} is no name")
    return value
