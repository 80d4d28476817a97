"""Worlds as environments: their API, their seeds, and what they say to bad input."""

import doctest
import functools
import gzip
import itertools
import os
import pathlib
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
pytest.importorskip("pettingzoo")

import phalanx
import phalanx.envs
from gymnasium import spaces
from pettingzoo.test import parallel_api_test, parallel_seed_test

BOOK = pathlib.Path(__file__).parents[3] / "docs" / "book" / "src"
WORLDS = {
    "line": ("line", {"n": 6}),
    "line-ring": ("line", {"n": 6, "network": {"kind": "ring"}, "kappa": 2, "start": "zeros"}),
    "wireless": ("wireless", {"rows": 3, "columns": 4}),
    "epidemic": ("epidemic", {}),
    "epidemic-grid": ("epidemic", {"n": 12, "kappa": 0}),
    "pistonball": ("pistonball", {"n": 5, "game": "paper"}),
    "pettingzoo": ("pistonball", {"n": 5, "game": "pettingzoo", "kappa": 1}),
    "continuous": ("pistonball", {"n": 5, "game": "pettingzoo", "continuous": True}),
    "platoon": ("platoon", {"n": 3}),
    "junctions": ("junctions", {"town": {"grid": [1, 2]}, "kappa": 1}),
    "junctions-mask": (
        "junctions",
        {"town": {"grid": [2, 1]}, "kappa": 0, "rules": "mask", "observations": "box"},
    ),
}
worlds = pytest.mark.parametrize("name", WORLDS)


def make(name, **settings):
    source, keys = WORLDS[name]
    return phalanx.env(source, **{**keys, **settings})


def vector(name, copies, **settings):
    source, keys = WORLDS[name]
    return phalanx.vector_env(source, copies, **{**keys, **settings})


def sample(env, rng):
    """An array of actions [copies, n]."""
    if env.continuous:
        return rng.uniform(-1, 1, (env.copies, len(env.sizes))).astype(np.float32)
    return rng.integers(0, env.action_counts, (env.copies, len(env.sizes)))


@worlds
@pytest.mark.parametrize("num_cycles", [30, 400])
def test_api_of_pettingzoo(name, num_cycles):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(make(name), num_cycles=num_cycles)
        parallel_seed_test(lambda: make(name), num_cycles=num_cycles)


@worlds
def test_aec_form(name):
    """What else PettingZoo does with parallel environments: turn them into turns."""
    from pettingzoo.test import api_test
    from pettingzoo.utils import parallel_to_aec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(parallel_to_aec(make(name)), num_cycles=20)


@worlds
def test_what_is_seen_is_in_its_space(name):
    env = make(name, max_cycles=20)
    for seed in (1, 2):
        observations, infos = env.reset(seed=seed)
        assert infos == {agent: {} for agent in env.possible_agents}
        for step in itertools.count(1):
            for agent in env.possible_agents:
                assert env.observation_space(agent).contains(observations[agent])
                assert env.observation_space(agent).dtype == observations[agent].dtype
            assert env.state_space.contains(env.state())
            if not env.agents:
                break
            actions = {agent: env.action_space(agent).sample() for agent in env.agents}
            observations, rewards, terminations, truncations, infos = env.step(actions)
            for given in (observations, rewards, terminations, truncations, infos):
                assert list(given) == env.possible_agents
            assert all(type(value) is float for value in rewards.values())
            assert set(truncations.values()) == {step == 20}
            assert not any(terminations.values()) or env.metadata["name"] == "phalanx_pistonball"
        assert step == 21 or any(terminations.values())


@worlds
def test_copies_are_environments(name):
    """Copy k of seed s plays what an environment plays from seed s + k on, episode after episode, on any number of threads."""
    copies, seed = 3, 40
    games = [vector(name, copies, max_cycles=9, threads=threads) for threads in (1, 2)]
    envs = [make(name, max_cycles=9) for _ in range(copies)]
    starts = [game.reset(seed=seed) for game in games]
    assert starts[0][1] == {}
    np.testing.assert_array_equal(starts[0][0], starts[1][0])
    rng, sizes, finishes = np.random.default_rng(3), games[0].sizes, 0

    def same(row, observations):
        for i, agent in enumerate(envs[0].possible_agents):
            np.testing.assert_array_equal(row[i, : sizes[i]], observations[agent])
            assert not row[i, sizes[i] :].any()

    for k, env in enumerate(envs):
        same(starts[0][0][k], env.reset(seed=seed + k)[0])
    for _ in range(31):
        actions = sample(games[0], rng)
        first, second = (game.step(actions) for game in games)
        for a, b in zip(first[:4], second[:4]):
            np.testing.assert_array_equal(a, b)
        assert first[4].keys() == second[4].keys()
        for key in first[4]:
            np.testing.assert_array_equal(first[4][key], second[4][key])
        observations, rewards, terminations, truncations, infos = first
        np.testing.assert_array_equal(games[0].state(), games[1].state())
        finished = []
        for k, env in enumerate(envs):
            each = actions[k][:, None] if games[0].continuous else actions[k].tolist()
            seen, rewarded, ended, cut, told = env.step(dict(zip(env.agents, each)))
            assert rewards[k].tolist() == list(rewarded.values())
            assert terminations[k] == any(ended.values()) and truncations[k] == any(cut.values())
            for channel in told[env.possible_agents[0]]:
                assert infos[channel][k].tolist() == [told[agent][channel] for agent in env.possible_agents]
            if not env.agents:
                same(infos["final_observations"][len(finished)], seen)
                finished.append(k)
                seen, _ = env.reset()
            same(observations[k], seen)
            np.testing.assert_array_equal(games[0].state()[k], env.state())
        assert infos.get("finished", np.array([])).tolist() == finished
        assert ("final_observations" in infos) == bool(finished)
        finishes += len(finished)
    assert finishes >= 3 * copies


@worlds
def test_seeds(name):
    env = make(name, max_cycles=6)

    def episode(**reset):
        seen = [env.reset(**reset)[0]]
        for agent in env.possible_agents:
            env.action_space(agent).seed(3)
        while env.agents:
            step = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
            seen.append((step[0], list(step[1].values())))
        return repr(seen)

    with np.printoptions(threshold=10**6):
        first, second, third = episode(seed=5), episode(), episode(seed=6)
        assert episode(seed=5) == first
        assert episode() == second
        assert len({first, second, third}) == 3 or name == "line-ring"
        env.reset(seed=5)
        assert episode() == second, "an episode that was left counts"


def test_returned_arrays_stay_as_they_are():
    games = vector("pettingzoo", 2)
    observations, _ = games.reset(seed=1)
    kept = observations.copy()
    actions = np.full((2, 5), 2)
    first = games.step(actions)
    values = [array.copy() for array in first[:4]]
    games.step(actions)
    np.testing.assert_array_equal(observations, kept)
    for array, value in zip(first[:4], values):
        np.testing.assert_array_equal(array, value)
    first[0][:] = 9.0
    assert not (games.step(actions)[0] == 9.0).any()


def philox(counter, key):
    """One block of Philox4x32-10 (Salmon et al. 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_chance_is_that_of_its_place():
    """The line by definition: the draw of an agent at a step is a word of the block of (agent, pair of steps, episode)."""
    n, seed, evaluation = 7, 2**40 + 9, 5
    env = phalanx.env("line", n=n, max_cycles=25)
    env.reset(seed=seed)
    rng = np.random.default_rng(1)
    sometimes = 0
    for episode in range(3):
        if episode:
            env.reset()
        for step in range(25):
            states = env.state().tolist()
            actions = [int(a) for a in rng.random(n) < 0.8]
            _, rewards, *_ = env.step(dict(zip(env.agents, actions)))
            assert list(rewards.values()) == [(1.0 if i == 0 else 0.1) * s for i, s in enumerate(states)]
            for i in range(n):
                words = philox([i, step // 2, 0, evaluation << 24 | episode], [seed & 0xFFFFFFFF, seed >> 32])
                draw = (words[step % 2 * 2 + 1] >> 1) / 2**31
                if i == 0:
                    one = float(states[1])
                elif i == n - 1:
                    one = float(actions[i])
                else:
                    one = [[0.0, 0.0], [0.8, 1.0]][actions[i]][states[i + 1]]
                    sometimes += one == 0.8
                assert env.state()[i] == (draw >= 1 - one)
    assert sometimes > 20


def test_attributes():
    env = make("wireless")
    assert env.possible_agents[:2] == ["user_0", "user_1"] and env.agents == []
    assert env.max_num_agents == 12 and env.unwrapped is env
    assert env.metadata == {
        "name": "phalanx_wireless",
        "render_modes": ["rgb_array", "human"],
        "render_fps": 5,
        "is_parallelizable": True,
    }
    assert (0, 1) in env.graph and all(i < j for i, j in env.graph)
    assert env.kappa == 1 and env.np_random is None and env.np_random_seed is None
    assert make("line").possible_agents[0] == "agent_0" and make("epidemic").possible_agents[-1] == "person_33"
    ring = make("line-ring")
    assert ring.neighbourhoods[0] == [0, 1, 2, 4, 5]
    assert ring.observation_space("agent_0") == spaces.MultiDiscrete([2] * 5, dtype=np.uint8)
    assert make("continuous").action_space("piston_0") == spaces.Box(-1, 1, (1,), np.float32)
    assert make("line").action_spaces["agent_3"] == spaces.Discrete(2)
    assert set(make("line").observation_spaces) == set(make("line").possible_agents)
    assert phalanx.parallel_env is phalanx.env


def test_defaults_are_those_of_the_preset():
    assert (phalanx.env("line").max_cycles, phalanx.env("wireless").max_cycles) == (125, 12)
    assert phalanx.env("epidemic").max_cycles == 60
    pistonball = phalanx.env("pistonball")
    assert (pistonball.max_cycles, pistonball.kappa, len(pistonball.possible_agents)) == (125, 3, 10)
    assert len(phalanx.env("pistonball20").possible_agents) == 20
    assert len(phalanx.env("epidemic", n=15).possible_agents) == 15
    custom = {"horizon": 7, "world": {"kind": "line", "n": 4}, "kappa": 2}
    assert phalanx.env(custom).max_cycles == 7 and phalanx.env(custom, n=3).kappa == 2
    assert len(phalanx.env(custom, n=3).possible_agents) == 3


def test_files(tmp_path):
    file = tmp_path / "line.toml"
    file.write_text('horizon = 9\n[world]\nkind = "line"\nn = 3\n')
    for source in (file, str(file)):
        assert phalanx.env(source).max_cycles == 9


def test_channels_are_told():
    env = make("epidemic")
    env.reset(seed=1)
    for _ in range(5):
        states = env.state()
        _, rewards, _, _, infos = env.step({agent: 0 for agent in env.agents})
        infected = [infos[agent]["infected"] for agent in env.possible_agents]
        assert infected == [float(state == 1) for state in states]
        assert all((reward == 1.0) == (state != 1) for reward, state in zip(rewards.values(), states))
    games = vector("epidemic", 2)
    games.reset(seed=1)
    infos = games.step(np.zeros((2, 34), np.int32))[4]
    assert {"infected", "treatment"} <= set(infos) and "reward" not in infos


NETS = pathlib.Path(__file__).parents[2] / "phalanx-junctions" / "tests" / "reference" / "nets"


@pytest.fixture
def star(tmp_path):
    """A road network with three junctions, and its flows."""
    for name in ("roadnet.json", "flow.json"):
        (tmp_path / name).write_bytes(gzip.decompress((NETS / "star" / f"{name}.gz").read_bytes()))
    return {"roadnet": tmp_path / "roadnet.json", "flow": str(tmp_path / "flow.json")}


def test_roads_from_files(star):
    env = phalanx.env("junctions", **star, decision=5, yellow=2)
    assert env.possible_agents == ["junction_0", "junction_1", "junction_2"]
    assert (env.max_cycles, env.kappa, len(env.graph)) == (720, 1, 3)
    assert phalanx.env("junctions", **star).max_cycles == 360
    assert phalanx.env("junctions", **star, max_cycles=9).max_cycles == 9
    # Without files it is a town, an hour of which the preset has.
    assert len(phalanx.env("junctions").possible_agents) == 16 and phalanx.env("junctions").max_cycles == 720
    assert phalanx.env("junctions", decision=15).max_cycles == 240
    # Departures are those of the file: every seed plays the same.
    games = phalanx.vector_env("junctions", 2, **star)
    games.reset(seed=1)
    for _ in range(40):
        observations, rewards, _, _, infos = games.step([np.array(games.action_counts) - 1] * 2)
    np.testing.assert_array_equal(observations[0], observations[1])
    assert rewards.min() < 0 and infos["waiting"].max() > 0
    assert set(infos) >= {"waiting", "green_time", "green_skip", "phase_skip", "starvation", "spillback"}
    assert infos["starvation"].max() == 1.0, "somebody waits at a light that was red for 400 s"
    refuses(phalanx.ConfigError, "world.flow: is missing", phalanx.env, "junctions", roadnet=star["roadnet"])
    refuses(
        phalanx.ConfigError, "no_such.json", phalanx.env, "junctions", roadnet="no_such.json", flow=star["flow"]
    )
    refuses(phalanx.ConfigError, "world.town", phalanx.env, "junctions", **star, town={"seed": 1})
    refuses(phalanx.ConfigError, "world.decision", phalanx.env, "junctions", **star, decision=0)


def test_traffic_is_that_of_an_evaluation():
    """From seed s on an environment plays the episodes of the evaluation that closes a run with that seed."""
    # With one phase every policy does the same.
    world = {"town": {"grid": [1, 2]}, "phases": 1}
    settings = {
        "horizon": 30,
        "batch": 2,
        "iterations": 1,
        "seed": 7,
        "evaluation": {"episodes": 4},
        "constraint": [],
    }
    run = phalanx.train("junctions-grid4x4", **settings, world=world, temporary=True)
    games = phalanx.vector_env("junctions", 1, max_cycles=30, **world)
    games.reset(seed=7)
    returns = [sum(games.step([[0, 0]])[1].mean() for _ in range(30)) for _ in range(4)]
    assert len(set(returns)) == 4
    assert np.mean(returns) == pytest.approx(run.outcome["return"], rel=1e-6)


def test_travel_times_are_measured():
    world = {"town": {"grid": [1, 2]}, "phases": 1}
    games = phalanx.vector_env("junctions", 2, max_cycles=30, **world)
    games.reset(seed=7)
    for _ in range(30):
        so_far = games.measures()
        infos = games.step([[0, 0]] * 2)[4]
    names = list(so_far)
    assert names == ["travel_time", "travel_time_tables", "finished", "waiting_outside", "longest_red"]
    final = infos["final_measures"]
    assert final.shape == (2, 5) and (final[:, names.index("finished")] >= so_far["finished"]).all()
    assert (games.measures()["finished"] == 0).all(), "the next episodes have begun"
    # The environment of PettingZoo plays the same, and knows the numbers after the end.
    env = phalanx.env("junctions", max_cycles=30, **world)
    env.reset(seed=8)
    while env.agents:
        env.step({agent: 0 for agent in env.agents})
    assert list(env.measures().values()) == final[1].tolist()
    assert env.measures()["travel_time"] > env.measures()["travel_time_tables"] > 0


@worlds
def test_pickles_are_new_environments(name):
    env = make(name, render_mode="rgb_array")
    env.reset(seed=3)
    other = pickle.loads(pickle.dumps(env))
    assert other.agents == [] and other.possible_agents == env.possible_agents
    assert other.render_mode == "rgb_array" and other.max_cycles == env.max_cycles
    np.testing.assert_equal(other.reset(seed=3)[0], env.reset(seed=3)[0])


@worlds
def test_pictures(name):
    env = make(name, render_mode="rgb_array")
    with pytest.raises(phalanx.ConfigError, match="call reset"):
        env.render()
    env.reset(seed=1)
    first = env.render()
    assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
    np.testing.assert_array_equal(first, env.render())
    env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    second = env.render()
    assert second.shape == first.shape and (second != first).any()


@pytest.mark.filterwarnings("ignore")
def test_no_pictures_without_a_render_mode():
    env = make("line")
    env.reset()
    assert env.render() is None


def refuses(error, match, call, *arguments, **settings):
    with pytest.raises(error, match=match):
        call(*arguments, **settings)


@pytest.mark.parametrize("maker", [phalanx.env, phalanx.vector_env])
def test_bad_arguments(maker):
    config = phalanx.ConfigError
    assert issubclass(config, ValueError)
    refuses(config, "`nothing`", maker, "nothing")
    refuses(config, "world.kind", maker, {"world": {"kind": "nothing"}})
    refuses(config, "source: `int`", maker, 3)
    refuses(config, "world.colour", maker, "line", colour="red")
    refuses(config, "world.n", maker, "line", n=1)
    refuses(config, "world.n", maker, "pistonball", n=10**9)
    refuses(config, "world.n", maker, "line", n=-4)
    refuses(config, "world.game", maker, "pistonball", game="chess")
    refuses(config, "world.random_drop", maker, "pistonball", random_drop=False)
    refuses(TypeError, "world.n", maker, "line", n=object())
    refuses(config, "kappa", maker, "line", kappa=-1)
    refuses(config, "kappa", maker, "line", kappa=1.5)
    refuses(config, "kappa", maker, "line", kappa=2**70)
    refuses(config, "network.kind", maker, "line", network={"kind": "star of david"})
    refuses(TypeError, "network", maker, "line", network="ring")
    refuses(config, "continuous", maker, "line", continuous=True)
    refuses(config, "continuous", maker, "pistonball", game="paper", continuous=True)
    refuses(TypeError, "continuous", maker, "pistonball", continuous="yes")
    for bad in (0, -1, 2**32, 10**30):
        refuses(config, "max_cycles", maker, "line", max_cycles=bad)
    refuses(TypeError, "max_cycles", maker, "line", max_cycles=2.5)


def test_bad_arguments_of_one_kind():
    config = phalanx.ConfigError
    refuses(config, "render_mode", phalanx.env, "line", render_mode="ansi")
    for bad in (0, -3, 10**30, 2**40):
        refuses(config, "copies", phalanx.vector_env, "line", copies=bad)
    refuses(TypeError, "copies", phalanx.vector_env, "line", copies=1.5)
    refuses(TypeError, "threads", phalanx.vector_env, "line", threads="two")
    refuses(config, "threads", phalanx.vector_env, "line", threads=0)
    env = make("line")
    for bad, error in ((0, config), (-1, config), (2**64, config), (2.5, TypeError)):
        with pytest.raises(error, match="max_cycles"):
            env.max_cycles = bad
    with pytest.raises(KeyError):
        env.action_space("agent_99")
    with pytest.raises(AttributeError, match="no ball"):
        _ = env.ball


@worlds
def test_bad_seeds(name):
    for env in (make(name), vector(name, 4)):
        refuses(phalanx.ConfigError, "seed: -1", env.reset, seed=-1)
        refuses(TypeError, "seed: 1.5", env.reset, seed=1.5)
        refuses(TypeError, "seed: 'one'", env.reset, seed="one")
        env.reset(seed=np.int64(3))
        env.reset(seed=2**60)
        if not name.startswith(("pistonball", "pettingzoo", "continuous")):
            refuses(phalanx.ConfigError, "seed", env.reset, seed=2**64)
        else:
            env.reset(seed=2**100)


@worlds
def test_steps_outside_of_episodes(name):
    for env in (make(name, max_cycles=1), vector(name, 2)):
        for call in (env.state, functools.partial(env.step, {})):
            refuses(phalanx.ConfigError, "call reset", call)
    env = make(name, max_cycles=1)
    env.reset(seed=1)
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    env.step(actions)
    assert env.agents == []
    refuses(phalanx.ConfigError, "is over", env.step, actions)
    refuses(phalanx.ConfigError, "is over", env.step, {})
    env.reset()
    env.step(actions)


def test_bad_actions():
    config = phalanx.ConfigError
    env = make("line")
    env.reset(seed=1)
    before = env.state()
    good = {agent: 1 for agent in env.agents}
    refuses(config, "`agent_0` is missing", env.step, {})
    refuses(config, "`agent_5` is missing", env.step, {a: 1 for a in env.agents[:-1]})
    refuses(config, "'agent_6' is no agent", env.step, {**good, "agent_6": 1})
    refuses(config, "3 is no agent", env.step, {**good, 3: 1})
    refuses(TypeError, "actions: `list`", env.step, [1] * 6)
    refuses(TypeError, "actions: `NoneType`", env.step, None)
    for bad in (2, -1, 256, 257):
        refuses(config, rf'actions\["agent_2"\]: {bad}; allowed are 0 to 1', env.step, {**good, "agent_2": bad})
    for bad in (
        1.0,
        "1",
        None,
        np.array([1.0]),
        np.array([1, 1]),
        np.array([[1]]),
        np.float32(1),
        float("nan"),
        2**70,
    ):
        refuses(TypeError, r'actions\["agent_2"\]', env.step, {**good, "agent_2": bad})
    np.testing.assert_array_equal(env.state(), before)
    for good_one in (np.int64(1), np.uint8(1), np.array(1), np.array([1]), np.array([1], np.uint8), True):
        env.step({**good, "agent_2": good_one})


def test_bad_continuous_actions():
    config = phalanx.ConfigError
    env = make("continuous")
    env.reset(seed=1)
    before = env.state()
    good = {agent: np.zeros(1, np.float32) for agent in env.agents}

    def one(value):
        return env.step({**good, "piston_3": value})

    for bad in (1.5, -1.001, np.nan, np.inf):
        for dtype in (np.float32, np.float64):
            refuses(config, r'actions\["piston_3"\].*allowed are -1 to 1', one, np.array([bad], dtype))
    for bad in (
        0.5,
        np.float32(0.5),
        np.zeros(2, np.float32),
        np.zeros((1, 1), np.float32),
        np.zeros(1, np.int64),
    ):
        refuses(TypeError, r'actions\["piston_3"\]', one, bad)
    for bad in (np.zeros(1, np.float16), [], ["x"], [0.1, 0.2], None, np.zeros(0, np.float32)):
        refuses(TypeError, r'actions\["piston_3"\]', one, bad)
    np.testing.assert_array_equal(env.state(), before)
    for good_one in (
        [0.5],
        (0.5,),
        np.array([0.5]),
        np.array([1.0, 0.5], np.float32)[1:],
        np.array([-1], np.float32),
    ):
        one(good_one)


def test_bad_arrays_of_actions():
    config = phalanx.ConfigError
    games = vector("line", 3)
    games.reset(seed=1)
    before = games.state()
    for shape in ((3, 5), (2, 6), (18,), (3, 6, 1), (), (3, 6, 2), (0, 6)):
        refuses(config, "actions: the shape is", games.step, np.zeros(shape, np.uint8))
    for bad in (2, -1, 258, 2**40):
        actions = np.zeros((3, 6), np.int64)
        actions[1, 4] = bad
        refuses(config, rf"actions\[1, 4\]: {bad}; allowed are 0 to 1", games.step, actions)
    refuses(config, r"actions\[0, 0\]", games.step, np.full((3, 6), 2**64 - 1, np.uint64))
    for bad in (np.zeros((3, 6)), np.full((3, 6), np.nan), np.zeros((3, 6), bool), np.full((3, 6), "a")):
        refuses(TypeError, "actions", games.step, bad)
    refuses(TypeError, "actions", games.step, np.full((3, 6), None))
    refuses(config, "actions", games.step, [[1], [1, 2]])
    np.testing.assert_array_equal(games.state(), before)
    for dtype in (np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64):
        games.step(np.ones((3, 6), dtype))
    games.step([[1] * 6] * 3)
    games.step(np.ones((6, 3), np.uint8).T)
    games = vector("continuous", 2)
    games.reset(seed=1)
    before = games.state()
    for bad in (1.01, np.nan, -np.inf):
        for dtype in (np.float32, np.float64):
            actions = np.zeros((2, 5), dtype)
            actions[1, 2] = bad
            refuses(config, r"actions\[1, 2\].*allowed are -1 to 1", games.step, actions)
    refuses(TypeError, "actions", games.step, np.zeros((2, 5), int))
    refuses(config, "shape", games.step, np.zeros((2, 5, 2), np.float32))
    np.testing.assert_array_equal(games.state(), before)
    games.step(np.zeros((2, 5, 1), np.float32))
    games.step(np.zeros((2, 5)))


def test_examples_in_the_documentation():
    assert doctest.testmod(phalanx.envs).failed == 0


@pytest.mark.filterwarnings("ignore")
def test_examples_in_the_book():
    """Every block of the page, one after another in one program."""
    page = (BOOK / "python-envs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, "python-envs.md", "exec"), names)


def test_pettingzoo_is_optional():
    """Without PettingZoo and gymnasium the package can be imported, and played with as arrays."""
    code = """
import sys
sys.modules["pettingzoo"] = sys.modules["gymnasium"] = None
import phalanx
games = phalanx.vector_env("pistonball", 2, n=3)
games.reset(seed=1)
games.step([[1, 1, 1]] * 2)
try:
    phalanx.env("line")
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install pettingzoo" in run.stdout
