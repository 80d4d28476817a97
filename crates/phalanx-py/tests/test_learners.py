"""Our environments in the hands of other packages: SuperSuit, and whatever asks for Gymnasium's vectors."""

import copy
import pickle
import warnings

import numpy as np
import phalanx
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

from gymnasium import spaces
from pettingzoo.test import parallel_api_test, parallel_seed_test

WORLDS = {
    "line": ("line", {"n": 4}),
    "wireless": ("wireless", {}),
    "epidemic": ("epidemic", {}),
    "pistonball": ("pistonball", {"n": 5, "kappa": 1}),
}
worlds = pytest.mark.parametrize("name", WORLDS)


@worlds
def test_boxes_keep_the_api(name):
    source, settings = WORLDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(phalanx.env(source, **settings, observations="box"), num_cycles=30)
        parallel_seed_test(lambda: phalanx.env(source, **settings, observations="box"), num_cycles=30)


@worlds
def test_boxes_tell_what_native_observations_tell(name):
    source, settings = WORLDS[name]
    native, boxed = (
        phalanx.env(source, **settings, observations=kind, max_cycles=10) for kind in ("native", "box")
    )
    (seen, _), (boxes, _) = native.reset(seed=3), boxed.reset(seed=3)
    shapes = {boxed.observation_space(agent).shape for agent in boxed.possible_agents}
    assert len(shapes) == 1 and boxed.observation_space(boxed.possible_agents[0]).dtype == np.float32
    while native.agents:
        for agent in native.agents:
            assert boxed.observation_space(agent).contains(boxes[agent])
            if name == "pistonball":
                size = len(seen[agent])
                assert np.array_equal(boxes[agent][:size], seen[agent]) and not boxes[agent][size:].any()
            else:
                table = boxes[agent].reshape(-1, max(native._states))
                rows = len(seen[agent])
                assert table[:rows].argmax(axis=1).tolist() == seen[agent].tolist()
                assert (table[:rows].sum(axis=1) == 1).all() and not table[rows:].any()
        actions = {agent: native.action_space(agent).sample() for agent in native.agents}
        seen, boxes = native.step(actions)[0], boxed.step(actions)[0]


@worlds
def test_every_world_in_supersuit(name):
    """Default kappa, at which agents see unequally many."""
    supersuit = pytest.importorskip("supersuit")
    source, settings = WORLDS[name]
    settings = {key: value for key, value in settings.items() if key != "kappa"}
    env = supersuit.pad_observations_v0(phalanx.env(source, **settings, observations="box", max_cycles=6))
    env = supersuit.dtype_v0(env, np.float32)
    vector = supersuit.pettingzoo_env_to_vec_env_v1(supersuit.pad_action_space_v0(env))
    many = supersuit.concat_vec_envs_v1(vector, 2, num_cpus=1, base_class="gymnasium")
    observations, _ = many.reset(seed=1)
    assert observations.shape[0] == many.num_envs == 2 * len(env.possible_agents)
    for _ in range(8):
        observations, rewards, *_ = many.step(np.array([many.action_space.sample() for _ in range(many.num_envs)]))
    assert np.isfinite(observations).all() and rewards.shape == (many.num_envs,)


@worlds
@pytest.mark.parametrize("kind", ["native", "box"])
def test_vectors_are_shaped_as_gymnasiums(name, kind):
    source, settings = WORLDS[name]
    games = phalanx.vector_env(source, 3, **settings, observations=kind, max_cycles=5)
    n = len(games.possible_agents)
    assert (games.num_envs, games.num_agents, games.closed) == (3, n, False)
    assert games.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    assert games.single_action_space.shape == (n,) and games.action_space.shape == (3, n)
    observations, infos = games.reset(seed=1, options={})
    assert games.observation_space.contains(observations) and infos == {}
    assert games.single_observation_space.contains(observations[1])
    assert isinstance(games.single_observation_space, spaces.Box) == (kind == "box" or name == "pistonball")
    games.action_space.seed(1)
    for step in range(1, 12):
        observations, rewards, terminations, truncations, infos = games.step(games.action_space.sample())
        assert games.observation_space.contains(observations) and rewards.shape == (3, n)
        over = terminations | truncations
        assert ("final_obs" in infos) == over.any() and truncations.all() == (step % 5 == 0)
        if over.any():
            assert infos["_final_obs"].tolist() == over.tolist()
            assert np.array_equal(infos["final_obs"][infos["finished"]], infos["final_observations"])
            assert infos["final_obs"].shape == observations.shape and not infos["final_obs"][~over].any()
    assert games.render().ndim == 3
    games.close()
    assert games.closed


def test_boxes_of_copies_are_those_of_environments():
    games = phalanx.vector_env("wireless", 2, observations="box")
    one = phalanx.env("wireless", observations="box")
    many, alone = games.reset(seed=4)[0], one.reset(seed=5)[0]
    assert np.array_equal(many[1], np.stack(list(alone.values())))


def test_a_continuous_vector_and_a_copy_of_it():
    games = phalanx.vector_env("pistonball", 2, n=4, game="pettingzoo", continuous=True, observations="box")
    games.reset(seed=1)
    assert isinstance(games.single_action_space, spaces.Box)
    games.step(games.action_space.sample())
    for again in (pickle.loads(pickle.dumps(games)), copy.deepcopy(games)):
        assert repr(again) == repr(games) and again.continuous
        assert np.array_equal(again.reset(seed=7)[0], games.reset(seed=7)[0])


@pytest.mark.parametrize("bad", [None, "boxes", 1, ["box"], np.array(["box", "box"])])
def test_other_observations_are_refused(bad):
    for make in (phalanx.env, phalanx.vector_env):
        with pytest.raises(phalanx.ConfigError, match="^observations: "):
            make("line", observations=bad)


def test_reprs_are_short():
    env = phalanx.env("line", n=4)
    assert repr(env) == str(env) == "<phalanx_line of 4 agents, kappa=1>"


def test_windows(monkeypatch):
    """What a window would show is what `rgb_array` gives; here matplotlib draws without one."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from phalanx.windows import Window

    shown = []
    monkeypatch.setattr(
        Window, "show", lambda self, pixels, show=Window.show: (shown.append(pixels), show(self, pixels))
    )
    human, picture = (phalanx.env("line", n=4, render_mode=mode) for mode in ("human", "rgb_array"))
    for env in (human, picture):
        env.reset(seed=1)
    assert human.render() is None and np.array_equal(shown[0], picture.render())
    human.step(dict.fromkeys(human.agents, 1))
    assert len(shown) == 3 and len(plt.get_fignums()) == 1
    human.close()
    assert not plt.get_fignums()
