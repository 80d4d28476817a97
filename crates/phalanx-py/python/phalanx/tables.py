"""Tables of numbers by column, as notebooks and data frames like them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

#: Rows that a notebook shows at most.
MOST_SHOWN = 12


class Table(dict[str, "np.ndarray[Any, np.dtype[Any]]"]):
    """Columns by name, each an array; `pandas.DataFrame(table)` takes it as it is.

    >>> import numpy as np
    >>> from phalanx import Table
    >>> table = Table({"agent": np.array([0, 1]), "value": np.array([0.5, 0.25])})
    >>> table
    <Table of 2 rows: agent, value>
    >>> float(table["value"].mean())
    0.375
    >>> [float(row["value"]) for row in table.rows()]
    [0.5, 0.25]
    """

    @classmethod
    def read(cls, path: Path) -> Table:
        """A CSV file. Columns of numbers become numbers; empty entries are NaN."""
        with path.open(newline="") as file:
            lines = csv.reader(file)
            names = next(lines, [])
            columns: list[tuple[str, ...]] = list(zip(*lines, strict=True)) or [() for _ in names]
        return cls({name: _numbers(column) for name, column in zip(names, columns, strict=True)})

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """From a list of dicts with the same keys."""
        listed = list(rows)
        names = listed[0].keys() if listed else ()
        return cls({name: np.array([row[name] for row in listed]) for name in names})

    def rows(self) -> list[dict[str, Any]]:
        """A dict per row."""
        return [dict(zip(self, values, strict=True)) for values in zip(*self.values(), strict=True)]

    def __repr__(self) -> str:
        """Short: arrays would fill a terminal."""
        count = len(next(iter(self.values()), ()))
        return f"<Table of {count} row{'s' if count != 1 else ''}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        count = len(next(iter(self.values()), ()))
        shown = list(range(count))
        if count > MOST_SHOWN:
            shown = [*range(MOST_SHOWN // 2), -1, *range(count - MOST_SHOWN // 2, count)]
        head = "".join(f"<th>{escape(name)}</th>" for name in self)
        body = []
        for row in shown:
            cells = ["…"] * len(self) if row < 0 else [_shown(column[row]) for column in self.values()]
            body.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><p>{count} rows</p>"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _numbers(column: tuple[str, ...]) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        return np.array([int(entry) for entry in column], dtype=np.int64)
    except ValueError:
        pass
    try:
        return np.array([float(entry) if entry else np.nan for entry in column], dtype=np.float64)
    except ValueError:
        return np.array(column)
