"""Graphs in the forms in which people have them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._checks import shown
from ._phalanx import ConfigError

#: Links as pairs of agents (numbers or names), a dict of neighbours, a square matrix of 0 and 1, a networkx graph, or a
#: function that says whether two agents are linked.
Graph = Iterable[Sequence[Hashable]] | Callable[[Any, Any], bool] | Any


def edges(graph: Graph, agents: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The links of `graph` as pairs of numbers, smaller first. Its nodes must be `agents`, by name or by number.

    >>> edges([("a", "b"), (1, 2)], ["a", "b", "c"])
    [(0, 1), (1, 2)]
    >>> edges({"a": ["b", "c"], "b": ["a"]}, ["a", "b", "c"])
    [(0, 1), (0, 2)]
    >>> edges(lambda i, j: abs(i - j) == 1, [0, 1, 2])
    [(0, 1), (1, 2)]
    """
    given: Any = graph
    number = {agent: i for i, agent in enumerate(agents)}
    if callable(graph) and not hasattr(graph, "edges"):
        pairs = ((i, j) for i in range(len(agents)) for j in range(i + 1, len(agents)))
        return [(i, j) for i, j in pairs if graph(agents[i], agents[j])]

    def find(node: Any) -> int:
        if isinstance(node, Hashable) and node in number:
            return number[node]
        try:
            index = node.__index__()
        except (AttributeError, TypeError):
            index = -1
        if 0 <= index < len(agents):
            return int(index)
        few = ", ".join(map(repr, agents[:4])) + (", …" if len(agents) > 4 else "")
        raise ConfigError(f"graph: {shown(node)} is no agent; there are {len(agents)}: {few}")

    if hasattr(graph, "edges") and hasattr(graph, "nodes"):
        nodes = list(graph.nodes)
        if len({find(node) for node in nodes}) != len(agents):
            raise ConfigError(f"graph: has {len(nodes)} nodes, but there are {len(agents)} agents")
        listed = list(graph.edges)
    elif isinstance(graph, Mapping):
        try:
            listed = [(node, other) for node, others in graph.items() for other in others]
        except TypeError:
            raise ConfigError("graph: a dict has a list of neighbours for every agent") from None
    elif _is_matrix(graph, len(agents)):
        listed = _links_of(np.asarray(graph))
    else:
        try:
            listed = list(given)
        except TypeError:
            kind = type(graph).__name__
            raise ConfigError(
                f"graph: `{kind}`; give pairs of agents, a dict of neighbours, a matrix, a networkx graph, or a function"
            ) from None
    found = set()
    for pair in listed:
        try:
            first, second = (pair[0], pair[1]) if len(pair) in (2, 3) else (None, None)
        except TypeError:
            first, second = None, None
        if first is None or second is None or isinstance(pair, str):
            raise ConfigError(f"graph: {shown(pair)} is no pair of agents")
        i, j = find(first), find(second)
        if i == j:
            raise ConfigError(f"graph: links {shown(first)} with itself")
        found.add((min(i, j), max(i, j)))
    return sorted(found)


def _is_matrix(graph: Any, agents: int) -> bool:
    """Whether it has a row and a column per agent. Of two agents, pairs may look the same."""
    try:
        return agents > 2 and np.shape(graph) == (agents, agents)
    except ValueError:
        # Rows of different lengths.
        return False


def _links_of(matrix: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    if matrix.dtype.kind not in "fiub" or not np.isin(matrix, (0, 1)).all():
        raise ConfigError("graph: a matrix has 0 and 1, with a row and a column per agent")
    if not np.array_equal(matrix, matrix.T):
        raise ConfigError("graph: the matrix is not symmetric; links go both ways")
    return [(int(i), int(j)) for i, j in np.argwhere(matrix)]
