"""Objects that are copied by making them again."""

from __future__ import annotations

from functools import partial
from typing import Any, Self


class Remade:
    """Copies, by ``pickle`` or ``copy``, are new objects that are made with the same arguments."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made._again = partial(cls, *given, **named)
        return made

    _again: partial[Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()
