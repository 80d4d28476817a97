"""Progress while training: a bar in notebooks, a line in terminals, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from ._phalanx import ConfigError

#: Least time between two looks of a bar.
EVERY = 0.2


class Bar(Protocol):
    """Something that shows how far training is."""

    def __call__(self, now: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class _Clock:
    """Time left, from the iterations that were seen: those of an earlier call took none of it."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations
        self._first: tuple[int, float] | None = None
        self._last = 0.0

    def is_time(self) -> bool:
        """Whether the last look is long enough ago."""
        now = time.monotonic()
        if now - self._last < EVERY:
            return False
        self._last = now
        return True

    def words(self, now: dict[str, Any]) -> str:
        """Where training is."""
        done, clock = now["iteration"], time.monotonic()
        first, begin = self._first = self._first or (done, clock)
        earned = f"return {now['return']:.4g}, " if now["return"] is not None else ""
        told = f"{done}/{self.iterations}: {earned}objective {now['objective']:.4g}, violation {now['violation_total']:.3g}"
        if done == first:
            return told
        return f"{told}, {(clock - begin) / (done - first) * (self.iterations - done):.0f} s left"


class _Terminal:
    """One line on standard error that is written over."""

    def __init__(self, iterations: int) -> None:
        self._clock, self._width = _Clock(iterations), 0

    def __call__(self, now: dict[str, Any]) -> None:
        if not self._clock.is_time():
            return
        line = self._clock.words(now)
        self._width = max(self._width, len(line))
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)


class _Notebook:
    """A bar of the browser's own, changed in place and gone at the end."""

    def __init__(self, iterations: int) -> None:
        display: Any = import_module("IPython.display")
        self._html: Callable[[str], Any] = display.HTML
        self._clock = _Clock(iterations)
        self._handle: Any = display.display(self._html("<progress></progress>"), display_id=True)

    def __call__(self, now: dict[str, Any]) -> None:
        if not self._clock.is_time():
            return
        bar = (
            f'<progress value="{now["iteration"]}" max="{self._clock.iterations}" style="width: 20em"></progress>'
        )
        self._handle.update(self._html(f"{bar} {self._clock.words(now)}"))

    def close(self) -> None:
        self._handle.update(self._html(""))


class _Quiet:
    def __call__(self, now: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class _Called:
    """Somebody's own function."""

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self._function = function

    def __call__(self, now: dict[str, Any]) -> None:
        self._function(now)

    def close(self) -> None:
        pass


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell else None
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"


def bar(wanted: bool | Callable[[dict[str, Any]], Any] | None, iterations: int) -> Bar:
    """What `progress=` asks for: `None` shows where somebody is looking."""
    if callable(wanted):
        return _Called(wanted)
    if wanted not in (None, True, False):
        raise ConfigError(f"progress: {wanted!r}; give True, False or a function")
    if wanted is None:
        wanted = in_notebook() or sys.stderr.isatty()
    if not wanted:
        return _Quiet()
    return _Notebook(iterations) if in_notebook() else _Terminal(iterations)
