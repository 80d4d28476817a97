"""Trained policies in our environments earn what training says they do."""

import numpy as np
import phalanx
import pytest

pytest.importorskip("pettingzoo")


def played(run, copies, settings):
    """Mean return of an episode of every copy, and its standard error."""
    games = phalanx.vector_env(
        run.config, copies, kappa=run.config["kappa"], max_cycles=run.config["horizon"], **settings
    )
    observations, _ = games.reset(seed=100)
    # The same numbers every time.
    run.policy.act(observations, seed=7)
    earned, playing = np.zeros(copies), np.ones(copies, dtype=bool)
    for _ in range(run.config["horizon"]):
        actions = run.policy.act(observations)
        observations, rewards, terminations, truncations, _ = games.step(actions.astype(np.uint8))
        earned += rewards.mean(axis=1) * playing
        playing &= ~(terminations | truncations)
    return earned.mean(), earned.std(ddof=1) / np.sqrt(copies)


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        ("synthetic", {"iterations": 100}),
        ("wireless", {"iterations": 30, "world": {"rows": 3, "columns": 3}}),
        ("paper/wireless", {"iterations": 2}),
        ("epidemic", {"iterations": 5}),
        ("pistonball", {"iterations": 25}),
    ],
)
def test_a_policy_earns_in_an_environment_what_it_earned_in_training(preset, settings):
    """The mean over 200 fresh episodes, within four standard errors of both."""
    run = phalanx.train(preset, **settings)
    mean, error = played(run, 200, {})
    # The closing evaluation has 400 episodes.
    assert mean == pytest.approx(run.outcome["return"], abs=4 * error * np.sqrt(1.5) + 1e-6)


def test_one_environment_of_a_run():
    run = phalanx.train("pistonball", iterations=1)
    env = run.env(max_cycles=30)
    observations, _ = env.reset(seed=1)
    copies = phalanx.vector_env(run.config, 1, kappa=run.config["kappa"])
    many, _ = copies.reset(seed=1)
    alone = run.policy.act(observations, seed=4)
    assert list(alone.values()) == run.policy.act(many, seed=4)[0].tolist()
    steps = 0
    while env.agents:
        observations, *_ = env.step(run.policy.act(observations, greedy=True))
        steps += 1
    assert 0 < steps <= 30


def test_tables_read_heights_in_pistonball():
    run = phalanx.train(
        "pistonball",
        iterations=2,
        horizon=20,
        kappa=1,
        policy={"kind": "softmax"},
        critic={"kind": "td", "steps": 50},
        actor={"normalise": False},
    )
    env = run.env()
    observations, _ = env.reset(seed=1)
    actions = run.policy.act(observations)
    assert set(actions.values()) <= {0, 1, 2}
    levels = (491 - np.asarray(env.heights)) / 4
    # The table of piston 3, by the levels of pistons 2 to 4.
    row = run.policy.parameters[3].reshape(17, 17, 17, 3)[tuple(levels[2:5].astype(int))]
    law = np.exp(row - row.max())
    assert run.policy.probabilities("piston_3", observations["piston_3"]) == pytest.approx(law / law.sum())
