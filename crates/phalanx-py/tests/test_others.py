"""Environments that nobody here wrote: made, trained in, evaluated, acted in, opened again. Where a package is not at hand,
a stand-in of its shape is."""

import numpy as np
import phalanx
import pytest
from strangers import Bits, Box, Discrete, Gym, Joined, Wide

pytest.importorskip("pettingzoo")

SHORT = {
    "objective": {"kind": "return"},
    "gamma": 0.9,
    "horizon": 6,
    "batch": 2,
    "iterations": 2,
    "evaluation": {"episodes": 3},
}


def everybody(one, other):
    return True


def lives(make, path, graph=everybody, **given):
    """The whole life of a run."""
    world = phalanx.from_pettingzoo(make, graph, **given)
    run = phalanx.train(world=world, **SHORT, out=path)
    assert run.evaluate(episodes=3).episodes == 3
    environment = make()
    observations, _ = environment.reset(seed=1)
    for _ in range(6):
        if environment.agents:
            actions = run.policy.act({agent: observations[agent] for agent in environment.agents})
            observations, *_ = environment.step(actions)
    assert phalanx.load(path, world=world).outcome == run.outcome


@pytest.mark.parametrize(
    "name",
    [
        "simple_spread_v3",
        "simple_tag_v3",
        "simple_reference_v3",
        "simple_speaker_listener_v4",
        "simple_adversary_v3",
        "simple_crypto_v3",
        "simple_push_v3",
        "simple_world_comm_v3",
    ],
)
def test_particles(name, tmp_path):
    module = pytest.importorskip(f"mpe2.{name}")
    lives(lambda: module.parallel_env(max_cycles=6), tmp_path / "run")


def test_turns_made_parallel(tmp_path):
    """Rock, paper, scissors takes turns; PettingZoo's own conversion makes it parallel."""
    rps_v2 = pytest.importorskip("pettingzoo.classic.rps_v2")
    from pettingzoo.utils.conversions import aec_to_parallel

    lives(lambda: aec_to_parallel(rps_v2.env(max_cycles=6)), tmp_path / "run")
    with pytest.raises(phalanx.ConfigError, match=r"make: .* take turns \(AEC\)"):
        phalanx.from_pettingzoo(rps_v2.env, everybody)


def test_what_takes_turns_or_is_continuous_is_told():
    simple_spread_v3 = pytest.importorskip("mpe2.simple_spread_v3")
    with pytest.raises(phalanx.ConfigError, match=r"make: .* take turns \(AEC\); use its parallel_env"):
        phalanx.from_pettingzoo(simple_spread_v3.env, everybody)
    with pytest.raises(
        phalanx.ConfigError, match="actions: .* which is not Discrete from 0; give a list of actions"
    ):
        phalanx.from_pettingzoo(lambda: simple_spread_v3.parallel_env(continuous_actions=True), everybody)
    with pytest.raises(phalanx.ConfigError, match="make: .* is no function; give one that makes an environment"):
        phalanx.from_pettingzoo(simple_spread_v3.parallel_env(), everybody)


def test_walkers(tmp_path):
    """As SISL's multiwalker: four numbers in a box."""
    walkers = type("Walkers", (Bits,), {"action_space": lambda self, agent: Box((4,)), "step": lambda self, actions: Bits.step(self, {k: int(v[0] > 0) for k, v in actions.items()})})  # fmt: skip
    with pytest.raises(phalanx.ConfigError, match="actions: .* which is not Discrete"):
        phalanx.from_pettingzoo(walkers, everybody)
    lives(walkers, tmp_path / "run", actions=[np.full(4, -1.0), np.full(4, 1.0)])


def test_warehouses(tmp_path):
    """As rware and lbforaging: lists in place of dicts, no names. An adapter of a few lines joins them."""
    with pytest.raises(
        phalanx.ConfigError, match="make: makes a `Gym` without possible_agents; a ParallelEnv is needed"
    ):
        phalanx.from_pettingzoo(Gym, everybody)
    lives(Joined, tmp_path / "run")


def test_battles(tmp_path):
    """As magent2's battle: 845 numbers, of which some are enough; soldiers fall."""
    lives(Wide, tmp_path / "run", scale=lambda numbers: numbers[:64])


@pytest.mark.parametrize("spaces", [Discrete(0), Discrete(-1), Discrete(2.5), Discrete(10**30), Box((1,))])
def test_action_spaces_that_are_none(spaces):
    strange = type("Strange", (Bits,), {"action_space": lambda self, agent: spaces})
    with pytest.raises(phalanx.ConfigError, match="actions: "):
        phalanx.from_pettingzoo(strange, everybody)


@pytest.mark.parametrize("source", ["line", "wireless", "epidemic", "pistonball"])
def test_pettingzoos_own_render_test(source):
    """It begins with a window, which matplotlib draws to nowhere here."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from pettingzoo.test import render_test
    from pettingzoo.utils.conversions import parallel_to_aec

    render_test(lambda render_mode: parallel_to_aec(phalanx.env(source, max_cycles=3, render_mode=render_mode)))
