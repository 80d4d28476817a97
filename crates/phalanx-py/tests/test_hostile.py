"""Values that nobody means, thrown at public functions: an exception that names an argument, never a crash."""

import collections
import random

import numpy as np
import phalanx
import pytest
from lines import Line
from strangers import Bits

#: Which pairs are tried.
SEED = 20261117
#: Kept small, so that what is accepted by chance takes no time.
SMALL = {
    "iterations": 1,
    "horizon": 3,
    "batch": 1,
    "evaluation": {"episodes": 2},
    "temporary": True,
    "progress": False,
}


class Strange:
    """Compares with nothing, has no length, and cannot be shown."""

    def __eq__(self, other):
        raise RuntimeError("do not compare me")

    __hash__ = None

    def __repr__(self):
        return "<strange>"


VALUES = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.0, -0.5, 0.5, 1.5, 1e308, float("nan"),
    float("inf"), -float("inf"), 1j, "", "x", "line", "synthetic", "\0", "ä" * 50, b"bytes", b"", [], [1], [[]], [None],
    (), (1, 2), {}, {"kind": "x"}, {"kind": None}, {1: 2}, {"a": {"b": {}}}, set(), frozenset([1]), object(), Strange(),
    print, len, lambda: None, lambda *given: None, lambda *given: float("nan"), range(3), iter([1, 2]), slice(1), ...,
    NotImplemented, Exception("x"), np.nan, np.int64(-3), np.uint64(2**64 - 1), np.float32(2), np.bool_(True),
    np.array(1), np.array([]), np.zeros((2, 2)), np.full((3, 4, 5), np.nan), np.array(["a"]), np.array([None]),
    np.zeros(3, bool), np.zeros((10, 3), np.int8), np.full((10, 3), 9), np.zeros((10, 3), complex),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), np.datetime64("2020-01-01"), np.zeros((0, 10, 3)),
    [[1], [1, 2]], [float("nan"), 1], {"agent_0": [[1], [1, 2]]}, {"agent_0": None}, {"agent_0": [0, 1], "agent_1": "x"},
    {"kind": float("nan")}, {"kind": "return", "scale": float("inf")}, [(0, 1), (1, 2, 3, 4)], memoryview(b"xy"),
    np.ma.masked, np.random.default_rng(1), [np.array([1.0]), None], {"reward": (0, float("nan"))}, {"reward": None},
    collections.OrderedDict(kind="line", n=3), collections.Counter("ab"),
]  # fmt: skip

TRAIN = ["source", "out", "temporary", "init", "threads", "callback", *phalanx.Settings.__annotations__]
EVALUATE = [
    "source",
    "policy",
    "batched",
    "episodes",
    "evaluation_seed",
    "confidence",
    "threads",
    "kappa",
    "world",
]
ENV = ["source", "kappa", "max_cycles", "continuous", "render_mode", "network", "observations", "n", "start"]
ENVIRONMENT = [
    "make",
    "graph",
    "cell",
    "cells",
    "actions",
    "channels",
    "ranges",
    "scale",
    "name",
    "check",
    "reuse",
]


def too_large(value):
    """What would be a fair wish, but a long one."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 2**31


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return phalanx.train("synthetic", iterations=1, out=tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture(scope="module")
def calls(run):
    """By name: a function of an argument's name and a value, and the names."""
    policy = run.policy
    games, one = phalanx.vector_env("line", 2, n=4), None
    games.reset(seed=1)
    pytest.importorskip("pettingzoo")
    one = phalanx.env("line", n=4)
    one.reset(seed=1)
    utility = phalanx.Utility(lambda occupancy: occupancy.sum(), np.ones_like)

    def train(name, value):
        if name in ("iterations", "horizon", "batch") and too_large(value):
            return None
        given = {"source": "synthetic", **SMALL, name: value}
        given = {key: entry for key, entry in given.items() if not (key == "temporary" and name == "out")}
        return phalanx.train(given.pop("source"), **given)

    def evaluate(name, value):
        if name in ("episodes", "threads") and too_large(value):
            return None
        given = {"source": "synthetic", "episodes": 8, "horizon": 3, "gamma": 0.5, name: value}
        return phalanx.evaluate(given.pop("source"), **given)

    def world(name, value):
        line = Line(3)
        setattr(line, name, value)
        return line.built

    def environment(name, value):
        given = {"make": Bits, "graph": [], name: value}
        return phalanx.from_pettingzoo(given.pop("make"), given.pop("graph"), **given).built

    return {
        "train": (train, TRAIN),
        "config": (lambda name, value: phalanx.config(**{"source": "synthetic", name: value}), ["source", *phalanx.Settings.__annotations__]),
        "evaluate": (evaluate, EVALUATE),
        "load": (lambda name, value: phalanx.load(**{"path": run.path, name: value}), ["path", "world", "utilities"]),
        "resume": (lambda name, value: phalanx.resume(**{"run": run.path, name: value}), ["run", "world", "utilities", "threads"]),
        "Policy.load": (lambda name, value: phalanx.Policy.load(**{"path": run.path, name: value}), ["path", "world", "utilities"]),
        "env": (lambda name, value: phalanx.env(**{"source": "line", name: value}), ENV),
        "vector_env": (
            lambda name, value: None if too_large(value) else phalanx.vector_env(**{"source": "line", name: value}),
            [*ENV[:4], *ENV[5:], "copies", "threads"],
        ),
        "env.step": (lambda name, value: one.step(value if name == "actions" else {**dict.fromkeys(one.agents, 0), "agent_2": value}), ["actions", "action"]),
        "env.reset": (lambda name, value: one.reset(seed=value), ["seed"]),
        "games.step": (lambda name, value: games.step(value), ["actions"]),
        "games.reset": (lambda name, value: games.reset(seed=value), ["seed"]),
        "act": (lambda name, value: policy.act(**{"observations": {"agent_0": [0, 1]}, name: value}), ["observations", "seed", "greedy"]),
        "act_of_one": (lambda name, value: policy.act({"agent_0": value}), ["observations"]),
        "act_of_agent": (lambda name, value: policy.act({value: [0, 1]}), ["agent"]),
        "probabilities": (lambda name, value: policy.probabilities(**{"agent": 0, "observation": [0, 1], name: value}), ["agent", "observation"]),
        "run.evaluate": (
            lambda name, value: None if too_large(value) else run.evaluate(**{"episodes": 8, name: value}),
            ["episodes", "seed", "confidence", "threads", "evaluation_seed"],
        ),
        "run.occupancy": (lambda name, value: None if too_large(value) else run.occupancy(**{"episodes": 2, name: value}), ["episodes", "seed", "threads"]),
        "exact": (lambda name, value: phalanx.exact(value), ["model"]),
        "exact_settings": (lambda name, value: phalanx.exact({"n": 1}, **{name: value}), ["theta", "mu", "kappa"]),
        "Utility": (lambda name, value: phalanx.Utility(**{"value": len, "gradient": len, name: value}), ["value", "gradient", "name", "range", "check"]),
        "constraint": (
            lambda name, value: train("constraint", [{"kind": utility, "at_most": 1e3, name: value}]),
            ["kind", "at_most", "name", "scale", "agents"],
        ),
        "World": (world, ["n", "graph", "states", "actions", "start", "rewards", "ranges", "parents", "check", "step", "transition"]),
        "from_pettingzoo": (environment, ENVIRONMENT),
    }  # fmt: skip


#: Exceptions of the values themselves, and of functions that are called with other arguments than they take.
THEIRS = (
    "do not compare me",
    "takes exactly one argument",
    "takes 0 positional",
    "has no len()",
    "unhashable type",
    "0-dimensional arrays",
    "structured or void",
)
#: Names by which an exception may speak of an argument that stands for others.
ALSO = {
    "source": [
        "preset",
        "config",
        "world",
        "objective",
        "kappa",
        "unknown field",
        "kind",
        "cannot be read",
        "is no setting",
        "can be used",
    ],
    "observation": ["observations"],
    "value": ["check", "gradient"],
    "path": ["world", "utilities"],
    "run": ["world", "path"],
    "model": ["missing field", "input"],
    "make": ["graph"],
    "evaluation_seed": ["seed"],
    "action": ["actions"],
    "init": ["policy"],
    "objective": ["utility", "value", "gradient", "out of"],
    "kind": ["utility", "constraint"],
    "at_most": ["constraint", "bounds"],
    "scale": ["constraint", "observations", "iteration 0"],
    "agents": ["constraint"],
    "name": ["constraint", "utility"],
    "world": ["name", "parents"],
    "cell": ["cells"],
    "rewards": ["channel"],
    "ranges": ["step", "channel"],
    "parents": ["step", "world"],
    "states": ["start", "step", "rewards"],
    "actions": ["rewards", "step"],
    "n": ["graph", "start", "parents", "rewards"],
    "step": ["state"],
    "start": ["state"],
    "agent": ["observations"],
    "observations": ["agent: "],
    "theta": ["model", "missing field"],
    "mu": ["model", "missing field"],
    "kappa": ["model", "missing field"],
}


def complaint(call, function, name, value):
    """What is wrong with the answer to a value, if anything."""
    try:
        function(name, value)
    except (phalanx.ConfigError, TypeError, ValueError, KeyError, phalanx.TrainingError, OSError) as error:
        message = str(error)
        words = [name, *ALSO.get(name, [])]
        if "internal error" in message or not any(word in message for word in (*words, *THEIRS)):
            return f"{call}({name}={value!r}): {type(error).__name__} {message!r}"
    except BaseException as error:  # noqa: BLE001
        # Panics of Rust are no `Exception`.
        if not any(word in str(error) for word in THEIRS):
            return f"{call}({name}={value!r}): {type(error).__name__} {error}"
    return None


def test_strange_values_are_answered_by_name(calls, recwarn):
    """A quarter of all pairs of arguments and values; the seed is part of the test."""
    pairs = [(call, name, k) for call, (_, names) in calls.items() for name in names for k in range(len(VALUES))]
    chosen = random.Random(SEED).sample(pairs, len(pairs) // 4)
    found = (complaint(call, calls[call][0], name, VALUES[k]) for call, name, k in chosen)
    assert [one for one in found if one] == []
