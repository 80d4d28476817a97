"""Environments that others wrote, trained in; and ones that do not fit."""

import numpy as np
import phalanx
import pytest


class Doors:
    """Two agents open doors; each is paid for the number that both see. One may leave early."""

    possible_agents = ["left", "right"]
    target = 0

    def __init__(self, leaves=False):
        self.leaves = leaves

    def observation_space(self, agent):
        return None

    def action_space(self, agent):
        return type("Discrete", (), {"n": 3})()

    def reset(self, seed=None, options=None):
        self.rng, self.agents, self.count = np.random.default_rng(seed), list(self.possible_agents), 0
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self):
        self.target = self.rng.integers(3)
        wide = {"left": [float(self.target)], "right": [0.5, -0.5]}
        return {agent: np.array(wide[agent]) for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.count += 1
        earned = {agent: float(action == self.target) for agent, action in actions.items()}
        ended = {agent: self.leaves and agent == "left" and self.count >= 3 for agent in self.agents}
        cut = {agent: self.count >= 8 for agent in self.agents}
        infos = {agent: {"effort": float(actions[agent])} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not ended[agent] and not cut[agent]]
        return self._seen(), earned, ended, cut, infos


SMALL = {
    "objective": {"kind": "return"},
    "policy": {"kind": "network", "hidden": [16]},
    "critic": {"kind": "returns", "hidden": [16], "learning_rate": 0.01, "minibatch": 64, "passes": 2},
    "actor": {"eta_theta": 0.02, "normalise": True, "discount": False},
    "gamma": 0.9,
    "horizon": 10,
    "batch": 16,
}


def test_neighbours_tell_what_an_agent_cannot_see(tmp_path):
    """The right agent sees nothing: with a link it learns from the left one's observation, without it cannot."""
    linked = phalanx.from_pettingzoo(Doors, [("left", "right")], ranges={"reward": (0.0, 1.0)})
    alone = phalanx.from_pettingzoo(Doors, [], ranges={"reward": (0.0, 1.0)})
    told = phalanx.train(world=linked, **SMALL, iterations=300, out=tmp_path / "a")
    untold = phalanx.train(world=alone, **SMALL, iterations=300, out=tmp_path / "b")
    assert told.returns["return"].min() > 7
    assert untold.returns["return"][0] > 7 and untold.returns["return"][1] < 4
    actions = told.policy.act({"left": np.array([2.0]), "right": np.array([0.5, -0.5])}, greedy=True)
    assert actions == {"left": 2, "right": 2}
    again = phalanx.train(told.path / "config.toml", world=linked, threads=1, out=tmp_path / "c")
    assert (again.path / "metrics.csv").read_bytes() == (told.path / "metrics.csv").read_bytes()
    assert told.evaluate(episodes=20).episodes == 20


def test_constraints_on_channels_and_cells(tmp_path):
    """Action 2 is an effort of 2: bounded, it is used less."""
    world = phalanx.from_pettingzoo(
        Doors, [("left", "right")], cell=lambda seen: int(seen[0] > 0.7), cells=2, channels={"effort": "effort"},
        ranges={"reward": (0.0, 1.0), "effort": (0.0, 2.0)},
    )  # fmt: skip
    bound = {"kind": "return", "channel": "effort", "scale": 0.1, "at_most": 0.25}
    settings = SMALL | {"dual": {"eta_mu": 2.0, "mu_max": 20.0}}
    free = phalanx.train(
        world=world, **settings, iterations=1, constraint=[{**bound, "at_most": 1.9}], out=tmp_path / "a"
    )
    held = phalanx.train(world=world, **settings, iterations=150, constraint=[bound], out=tmp_path / "b")
    assert free.agents["value"].min() > 0.45
    assert held.agents["value"].max() < 0.32
    spread = phalanx.train(
        world=world,
        **settings,
        iterations=2,
        constraint=[{"kind": "state_entropy", "at_least": 0.1}],
        out=tmp_path / "c",
    )
    left = spread.agents["value"][0]
    assert left == pytest.approx(-(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)), abs=0.02)


@pytest.mark.parametrize("form", [np.bool_, int, np.int8, float, lambda flag: np.array([flag])])
def test_flags_in_other_forms(form):
    """What wrappers make of booleans."""

    class Formed(Doors):
        def step(self, actions):
            moved = super().step(actions)
            return (
                *moved[:2],
                *({agent: form(flag) for agent, flag in part.items()} for part in moved[2:4]),
                moved[4],
            )

    expected, found = (
        phalanx.evaluate(
            phalanx.from_pettingzoo(make, []), objective={"kind": "return"}, gamma=0.9, horizon=20, episodes=8
        )
        for make in (lambda: Doors(leaves=True), lambda: Formed(leaves=True))
    )
    assert found.details == expected.details


def test_agents_may_leave(tmp_path):
    world = phalanx.from_pettingzoo(lambda: Doors(leaves=True), [("left", "right")], ranges={"reward": (0.0, 1.0)})
    run = phalanx.train(world=world, **SMALL, iterations=100, out=tmp_path / "a")
    left, right = run.returns["return"]
    assert 2.5 < left <= 3
    # What the left one saw, the right one is told no more.
    assert left < right < 7


def test_continuous_actions_by_a_list(tmp_path):
    class Dials(Doors):
        def action_space(self, agent):
            return type("Box", (), {"shape": (1,)})()

        def step(self, actions):
            assert all(action.shape == (1,) for action in actions.values())
            return super().step({agent: int(action[0]) for agent, action in actions.items()})

    with pytest.raises(phalanx.ConfigError, match="actions: 'left' acts in .* give a list"):
        phalanx.from_pettingzoo(Dials, [])
    dials = [np.array([0.0]), np.array([1.0]), np.array([2.0])]
    world = phalanx.from_pettingzoo(Dials, [], actions=dials)
    run = phalanx.train(world=world, **SMALL, iterations=2, out=tmp_path / "a")
    action = run.policy.act({"left": np.array([0.0]), "right": np.array([0.5, -0.5])})["left"]
    assert action in dials


@pytest.mark.parametrize("kind", ["primal-dual", "mappo-l"])
def test_an_environment_of_another_package(tmp_path, kind):
    """mpe2's simple_spread with a bound on how often an agent moves."""
    simple_spread_v3 = pytest.importorskip("mpe2.simple_spread_v3")

    def make():
        return simple_spread_v3.parallel_env(N=3, max_cycles=10)

    world = phalanx.from_pettingzoo(
        make, lambda a, b: True, channels={"moving": lambda agent, seen, action, reward, info: float(action != 0)},
        ranges={"reward": (-50.0, 10.0), "moving": (0.0, 1.0)}, name="spread",
    )  # fmt: skip
    run = phalanx.train(
        world=world, algorithm=kind, **SMALL, iterations=3, constraint=[{"kind": "return", "channel": "moving", "scale": 0.1, "at_most": 0.9}],
        out=tmp_path / "run", evaluation={"episodes": 5},
    )  # fmt: skip
    assert run.config["world"]["kind"] == "spread"
    environment = make()
    observations, _ = environment.reset(seed=1)
    while environment.agents:
        observations, *_ = environment.step(run.policy.act(observations))


def broken(**changes):
    return lambda: type("Broken", (Doors,), changes)()


def seen_as(value):
    return lambda self: dict.fromkeys(self.agents, value)


def step_with(part, value):
    """A step of which one dict has the same value for all."""

    def step(self, actions):
        moved = list(Doors.step(self, actions))
        moved[part] = dict.fromkeys(moved[part], value)
        return tuple(moved)

    return step


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: phalanx.from_pettingzoo(Doors(), []), "make"),
        (lambda: phalanx.from_pettingzoo(object, []), "make"),
        (lambda: phalanx.from_pettingzoo(broken(possible_agents=[]), []), "make: makes an environment without agents"),
        (lambda: phalanx.from_pettingzoo(broken(reset=lambda self, seed: {}), []), "make: its reset"),
        (lambda: phalanx.from_pettingzoo(Doors, [("left", "middle")]), "graph: 'middle' is no agent"),
        (lambda: phalanx.from_pettingzoo(Doors, [(0, 2)]), "graph: 2 is no agent"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cells=4), "cells"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cell=3), "cell"),
        (lambda: phalanx.from_pettingzoo(Doors, [], actions=[]), "actions"),
        (lambda: phalanx.from_pettingzoo(Doors, [], channels={"reward": "x"}), "channels"),
        (lambda: phalanx.from_pettingzoo(Doors, [], ranges={"cost": (0, 1)}), "ranges"),
        (lambda: phalanx.from_pettingzoo(Doors, [], ranges={"reward": (1, 0)}).built, "ranges"),
        (lambda: phalanx.from_pettingzoo(Doors, [], ranges={"reward": (0.0, 0.5)}).built, 'ranges["reward"]: agent 0 earns 1, not 0 to 0.5'),
        (lambda: phalanx.from_pettingzoo(Doors, [], channels={"cost": "cost"}).built, "channels"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cell=lambda seen: 5, cells=2).built, "cell (of 'left'): 5; allowed are 0 to 1"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cell=lambda seen: 0.5, cells=2).built, "cell"),
        (lambda: phalanx.from_pettingzoo(broken(_seen=seen_as(np.nan)), []).built, "observations"),
        (lambda: phalanx.from_pettingzoo(broken(_seen=seen_as({1: 0.0, "x": 1.0})), []), "observations: the keys [1, 'x'] have no order"),
        (lambda: phalanx.from_pettingzoo(broken(step=step_with(2, np.zeros(2))), []).built, "terminations (of 'left'): array([0., 0.]); True or False"),
        (lambda: phalanx.from_pettingzoo(broken(step=step_with(3, None)), []).built, "truncations (of 'left'): None; True or False"),
        (lambda: phalanx.from_pettingzoo(broken(step=step_with(4, None)), [], channels={"cost": "cost"}).built, "infos (of 'left'): `NoneType`; give a dict"),
        (lambda: phalanx.from_pettingzoo(Doors, ["x" * 9999]), "x…x"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cells=10**5000), "cells"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cells=0), "cells"),
        (lambda: phalanx.from_pettingzoo(Doors, [], channels={1: "x"}), "channels"),
        (lambda: phalanx.from_pettingzoo(Doors, [], scale=1), "scale"),
        (lambda: phalanx.from_pettingzoo(Doors, [], name=1), "name"),
        (lambda: phalanx.from_pettingzoo(broken(step=lambda self, actions: None), []).built, "make: its step"),
        (lambda: phalanx.from_pettingzoo(Doors, [], cell=lambda seen: 2**70, cells=2).built, "cell"),
        (lambda: phalanx.from_pettingzoo(broken(_seen=seen_as("words")), []), "observations"),
        (
            lambda: phalanx.from_pettingzoo(broken(_seen=lambda self: {a: np.random.rand(3) for a in self.agents}), []).built,
            "make: two episodes of one seed differ at step 0",
        ),
        (
            lambda: phalanx.from_pettingzoo(
                broken(_seen=lambda self: {a: np.zeros(1 + self.count) for a in self.agents}), []
            ).built,
            "observations: 'left' has 2 numbers, not 1",
        ),
    ],
)  # fmt: skip
def test_environments_that_do_not_fit_are_named(call, words):
    with pytest.raises(phalanx.ConfigError) as told:
        call()
    assert words in str(told.value)
