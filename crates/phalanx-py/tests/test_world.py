"""Your own worlds: the line written in NumPy against the built-in one, and worlds that are none."""

import gc
import weakref

import numpy as np
import phalanx
import pytest
from lines import KnownLine, Line


def trained(world, seed, out, **settings):
    return phalanx.train("synthetic", world=world, seed=seed, out=out, **settings)


def test_the_line_in_numpy_is_the_line(tmp_path):
    """Chance is laid out alike, so that even the numbers are the same: every state, and all that follows."""
    ours = trained(Line(10), 3, tmp_path / "ours", iterations=25)
    theirs = trained({"n": 10}, 3, tmp_path / "theirs", iterations=25)
    for name in ["metrics.csv", "agents.csv", "policy.safetensors"]:
        assert (ours.path / name).read_bytes() == (theirs.path / name).read_bytes(), name


class OtherLine(Line):
    """The same law, drawn another way."""

    def step(self, states, actions, uniform):
        return uniform < self.chance(states, actions)


def test_another_way_to_draw_gives_the_same_within_sampling_error(tmp_path):
    """Objectives of three seeds each; their difference against its standard error."""
    settings = {"iterations": 150, "evaluation": {"episodes": 200}}
    ours = [trained(OtherLine(10), s, tmp_path / f"o{s}", **settings).outcome["objective"] for s in (1, 2, 3)]
    theirs = [trained({"n": 10}, s, tmp_path / f"t{s}", **settings).outcome["objective"] for s in (4, 5, 6)]
    spread = np.sqrt(np.var(ours, ddof=1) / 3 + np.var(theirs, ddof=1) / 3)
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * spread + 0.002
    assert np.mean(ours) > 0.12


def test_a_known_law_gives_exact_values(tmp_path):
    run = trained(KnownLine(5), 1, tmp_path / "a", iterations=10)
    other = trained({"n": 5}, 1, tmp_path / "b", iterations=10)
    assert run.outcome["exact"] == other.outcome["exact"]
    assert trained(Line(5), 1, tmp_path / "c", iterations=10).outcome.get("exact") is None
    exact = phalanx.train("synthetic", world=KnownLine(4), algorithm="exact", iterations=5, out=tmp_path / "d")
    assert exact.metrics["objective"][-1] > 0
    with pytest.raises(phalanx.ConfigError, match="law of transitions"):
        phalanx.train("synthetic", world=Line(4), algorithm="exact", iterations=5)


def test_the_model_of_a_world_is_exact():
    reward = [{"kind": "linear", "r": [0, 0, 1, 1], "scale": 1.0 if i == 0 else 0.1} for i in range(3)]
    model = KnownLine(3).model(gamma=0.9) | {"f": reward, "g": [[]] * 3}
    found = phalanx.exact(model)
    run = phalanx.train(
        "synthetic", world=KnownLine(3), gamma=0.9, constraint=[], iterations=1, actor={"eta_theta": 0.0}
    )
    assert found["F"] * 0.1 == pytest.approx(run.outcome["exact"]["objective"])


class Walk(phalanx.World):
    """Agents on a ring walk among five places and are paid for meeting their left neighbour; two channels are told by step."""

    n, states, actions, graph = 6, 5, 3, [(i, (i + 1) % 6) for i in range(6)]
    ranges = {"reward": (0.0, 1.0), "moved": (0.0, 1.0)}

    def start(self, uniform):
        return (uniform * 5).astype(int)

    def step(self, states, actions, uniform):
        moved = np.clip(states + np.where(uniform < 0.9, actions - 1, 0), 0, 4)
        return moved, {"reward": moved == np.roll(states, 1), "moved": np.abs(moved - states)}


def test_rewards_of_steps_and_constraints_on_them(tmp_path):
    run = phalanx.train(
        world=Walk(), objective={"kind": "return"}, gamma=0.9, horizon=40, batch=20, iterations=150, kappa=1,
        constraint=[{"kind": "return", "channel": "moved", "scale": 0.1, "at_most": 0.2}],
        policy={"kind": "linear"}, critic={"kind": "linear", "on": "batch"}, actor={"eta_theta": 0.05},
        dual={"eta_mu": 1.0, "mu_max": 20.0}, out=tmp_path / "run",
    )  # fmt: skip
    assert run.outcome["return"] > 1.5 * run.metrics["return"][0]
    assert run.agents["value"].max() < 0.25
    # The same on any number of threads.
    again = phalanx.train(run.path / "config.toml", world=Walk(), threads=1, out=tmp_path / "again")
    assert (again.path / "metrics.csv").read_bytes() == (run.path / "metrics.csv").read_bytes()


def test_networks_and_large_worlds(tmp_path):
    run = phalanx.train(
        world=Walk(), objective={"kind": "return"}, policy={"kind": "network"}, critic={"kind": "returns"},
        iterations=2, horizon=10, out=tmp_path / "a",
    )  # fmt: skip
    assert run.policy.act({"agent_0": [0, 1, 2]}, seed=1)["agent_0"] in (0, 1, 2)
    large = phalanx.train("synthetic", world=Line(40_000), iterations=1, horizon=5, critic={"steps": 5}, evaluation={"episodes": 1}, out=tmp_path / "b")  # fmt: skip
    assert large.outcome["agent_steps"] > 40_000


def world(**changes):
    made = type("Changed", (Line,), changes)(4)
    if "parents" in changes:
        made.parents = changes["parents"]
    return made


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": lambda self, s, a, u: s[:3]}, "step: gives 3 states for 4 agents"),
        ({"step": lambda self, s, a, u: s + 1}, "the state 2; it has 2, from 0"),
        ({"step": lambda self, s, a, u: s - 5}, "step: gives agent 0 the state -"),
        ({"step": lambda self, s, a, u: s / 2}, "step: gives float64"),
        ({"step": lambda self, s, a, u: np.full(4, np.nan)}, "step: gives float64"),
        ({"step": lambda self, s, a, u: s[:, None]}, "step: gives int64 of shape"),
        ({"step": lambda self, s, a, u: None}, "step: gives object"),
        ({"step": lambda self, s, a, u: np.roll(s, 2)}, "not its parents"),
        ({"step": 3}, "step"),
        ({"transition": 1}, "transition"),
        ({"parents": [[0, 99]] * 4, "check": False}, "parents"),
        ({"parents": 1}, "parents"),
        ({"start": [np.nan, 1.0], "check": False}, "start"),
        ({"start": [0.5, 0.9], "check": False}, "start"),
        ({"check": 2}, "check"),
        ({"ranges": None}, "ranges"),
        ({"states": 0}, "states: 0"),
        ({"states": 300}, "states"),
        ({"states": [2, 2]}, "states: 2 numbers for 4 agents"),
        ({"states": "two"}, "states"),
        ({"actions": 2.5}, "actions"),
        ({"start": 2}, "start"),
        ({"start": [0, 1]}, "start: 2 states for 4 agents"),
        ({"start": [0.5, 0.6]}, "start: agent 0's [0.5, 0.6] are no probabilities"),
        ({"start": np.ones((3, 2)) / 2}, "start: 3 laws"),
        ({"start": lambda self, u: np.ones(3, int)}, "start: gives 3 states"),
        ({"start": "x"}, "start"),
        ({"ranges": {"reward": (0.0, 1.0)}}, "step: must give"),
        ({"ranges": {"cost": (1.0, 0.0)}}, "ranges"),
        ({"ranges": {"cost": 3}}, "ranges"),
        (
            {"ranges": {"cost": (0.0, 1.0)}, "step": lambda self, s, a, u: (Line.step(self, s, a, u), u + 5)},
            "whose range is 0 to 1",
        ),
        (
            {"ranges": {"cost": (0.0, 1.0)}, "step": lambda self, s, a, u: (Line.step(self, s, a, u), u * np.nan)},
            "whose range is 0 to 1",
        ),
        (
            {"ranges": {"cost": (0.0, 1.0)}, "step": lambda self, s, a, u: (Line.step(self, s, a, u), {"x": u})},
            "step: gives rewards",
        ),
        ({"transition": lambda self, i, s, a: [0.5, 0.6]}, "transition law"),
        ({"transition": lambda self, i, s, a: [0.5, 0.5]}, "step gives"),
        ({"transition": lambda self, i, s, a: [1.0]}, "transition: gives agent 0 1 probabilities"),
    ],
)
def test_worlds_that_are_none_are_named(changes, words):
    with pytest.raises((phalanx.ConfigError, TypeError)) as told:
        phalanx.train("synthetic", world=world(**changes), iterations=1)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ([(0, 4)], "graph: 4 is no agent"),
        ([(0, -1)], "graph: -1 is no agent"),
        ([(0, 0)], "with itself"),
        ([(0,)], "no pair"),
        ([3], "no pair"),
        (["ab"], "no pair"),
        (5, "graph"),
    ],
)
def test_graphs_that_do_not_fit_are_named(graph, words):
    line = Line(4)
    line.graph = graph
    with pytest.raises(phalanx.ConfigError, match=words):
        phalanx.train("synthetic", world=line, iterations=1)


def test_graphs_in_other_forms():
    networkx = pytest.importorskip("networkx")
    for graph in [networkx.path_graph(4), lambda i, j: abs(i - j) == 1, np.array([[0, 1], [2, 1], [2, 3]])]:
        line = Line(4)
        line.graph = graph
        assert line.built.edges == [(0, 1), (1, 2), (2, 3)]
    line = Line(4)
    line.graph = networkx.path_graph(5)
    with pytest.raises(phalanx.ConfigError, match="graph: 4 is no agent"):
        line.built.edges
    line.graph = networkx.path_graph(3)
    with pytest.raises(phalanx.ConfigError, match="graph: has 3 nodes"):
        line.built.edges


def test_tables_that_do_not_fit_are_named():
    for table, words in [
        (np.zeros((3, 2, 2)), "3 tables for 4"),
        (np.zeros((2, 3)), "shape"),
        (np.full((2, 2), np.nan), "nan"),
    ]:
        line = Line(4)
        line.rewards = {"reward": table}
        with pytest.raises(phalanx.ConfigError, match=f"rewards.*{words}"):
            phalanx.train("synthetic", world=line, iterations=1)


def test_an_exception_in_a_step_reaches_the_caller(tmp_path):
    class Failing(Line):
        calls = 0

        def step(self, states, actions, uniform):
            Failing.calls += 1
            if Failing.calls > 5000:
                raise ZeroDivisionError("in a step")
            return super().step(states, actions, uniform)

    with pytest.raises(ZeroDivisionError, match="in a step"):
        phalanx.train("synthetic", world=Failing(4), iterations=10**6, out=tmp_path / "run")
    assert "in a step" in (tmp_path / "run" / "meta.json").read_text()


def test_a_world_without_what_it_needs():
    class Empty(phalanx.World):
        pass

    with pytest.raises(phalanx.ConfigError, match="n: Empty does not set it"):
        phalanx.train(world=Empty(), objective={"kind": "return"})


def test_a_world_of_ones_own_as_an_environment(tmp_path):
    """The line in NumPy plays what the built-in one plays."""
    pytest.importorskip("pettingzoo")
    ours, theirs = phalanx.env(Line(5), kappa=1, max_cycles=20), phalanx.env("line", n=5, kappa=1, max_cycles=20)
    seen, _ = ours.reset(seed=3)
    expected, _ = theirs.reset(seed=3)
    rng = np.random.default_rng(1)
    while ours.agents:
        assert all(np.array_equal(seen[agent], expected[agent]) for agent in ours.agents)
        actions = {agent: int(rng.integers(2)) for agent in ours.agents}
        (seen, earned, *_), (expected, rewards, *_) = ours.step(actions), theirs.step(actions)
        assert earned == rewards
    run = phalanx.train("synthetic", world=Line(5), iterations=2, out=tmp_path / "run")
    assert set(run.policy.act(phalanx.env(Line(5)).reset(seed=1)[0])) == set(theirs.possible_agents)
    with pytest.raises(phalanx.ConfigError, match="has no pictures"):
        shown = phalanx.env(Line(5), render_mode="rgb_array")
        shown.reset(seed=1)
        shown.render()


def test_worlds_are_taken_as_they_are_and_let_go(tmp_path):
    line = Line(4)
    first = phalanx.train("synthetic", world=line, iterations=1, out=tmp_path / "a").outcome["return"]
    line.rewards = {"reward": np.zeros((2, 2))}
    assert first > 0 == phalanx.train("synthetic", world=line, iterations=1, out=tmp_path / "b").outcome["return"]
    gone = weakref.ref(line)
    utility = phalanx.Utility(lambda o: o.sum(), np.ones_like)
    utility_gone = weakref.ref(utility)
    phalanx.train(
        "synthetic", world=line, constraint=[{"kind": utility, "at_most": 1e3}], iterations=1, out=tmp_path / "c"
    )
    del line, utility
    gc.collect()
    assert gone() is None and utility_gone() is None


def test_graphs_that_can_be_gone_through_once():
    line = KnownLine(4)
    line.graph = ((i, i + 1) for i in range(3))
    assert line.built.edges == [(0, 1), (1, 2), (2, 3)] == [tuple(link) for link in line.model(0.9)["edges"]]


def test_huge_worlds_are_refused():
    for n in (-1, 0, 2**40, 2.5):
        line = Line(4)
        line.n = n
        with pytest.raises(phalanx.ConfigError, match="n: "):
            line.built.edges
