"""Progress while training: a bar in notebooks, a line in terminals, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from ._checks import shown
from ._phalanx import ConfigError

#: Least time between two looks of a bar, in seconds.
EVERY = 0.2
#: The same of lines in a log.
EVERY_LINE = 10.0


class Bar(Protocol):
    """Something that shows how far training is."""

    def __call__(self, now: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class _Clock:
    """Time left, from the iterations that were seen: those of an earlier call took none of it."""

    def __init__(self, iterations: int, every: float = EVERY, last: float = 0.0) -> None:
        self.iterations, self._every = iterations, every
        self._first: tuple[int, float] | None = None
        self._last = last

    def is_time(self) -> bool:
        """Whether the last look is long enough ago."""
        now = time.monotonic()
        if now - self._last < self._every:
            return False
        self._last = now
        return True

    def words(self, now: dict[str, Any]) -> str:
        """Where training is."""
        done, clock = now["done"], time.monotonic()
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


class _Lines:
    """A line on standard error now and then, for logs; none for training that takes a few seconds."""

    def __init__(self, iterations: int) -> None:
        self._clock = _Clock(iterations, EVERY_LINE, last=time.monotonic())

    def __call__(self, now: dict[str, Any]) -> None:
        told = self._clock.words(now)
        if self._clock.is_time():
            share = 100 * now["done"] // self._clock.iterations
            print(f"phalanx: {share} %, {told}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


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
        bar = f'<progress value="{now["done"]}" max="{self._clock.iterations}" style="width: 20em"></progress>'
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
    """What `progress=` asks for: `None` shows a bar where somebody is looking, and lines elsewhere."""
    if callable(wanted):
        return _Called(wanted)
    if not (wanted is None or isinstance(wanted, bool)):
        raise ConfigError(f"progress: {shown(wanted)}; give True, False or a function")
    if wanted is False:
        return _Quiet()
    # Programs without a console have no standard error.
    if sys.stderr is None and not in_notebook():
        return _Quiet()
    if wanted is None and not (in_notebook() or sys.stderr.isatty()):
        return _Lines(iterations)
    return _Notebook(iterations) if in_notebook() else _Terminal(iterations)
