"""Our pistonball beside PettingZoo's: the same seeds and actions, no tolerance anywhere."""

import os
import warnings

import numpy as np
import pytest

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
pistonball_v6 = pytest.importorskip("pettingzoo.butterfly.pistonball_v6")

import phalanx
from phalanx.envs import draw_start, generator


def theirs(n, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pistonball_v6.parallel_env(n_pistons=n, **settings)


def ours(n, **settings):
    return phalanx.env("pistonball", n=n, game="pettingzoo", **settings)


def assert_same_moment(our, their):
    game = their.unwrapped
    body = game.ball
    expected = {
        "x": body.position[0],
        "y": body.position[1],
        "vx": body.velocity[0],
        "vy": body.velocity[1],
        "angle": body.angle,
        "omega": body.angular_velocity,
    }
    assert our.ball == expected
    assert our.heights.tolist() == [piston.position[1] for piston in game.pistonList]


def play(our, their, act, seed):
    """Plays an episode in both, from a reset on. Returns how many steps it had and whether it ended at the wall."""
    observations, _ = our.reset(seed=seed)
    their.reset(seed=seed)
    assert our.agents == their.agents
    assert_same_moment(our, their)
    steps, terminated = 0, False
    while our.agents:
        actions = act(our, observations, steps)
        observations, *mine = our.step(actions)
        _, *other = their.step(actions)
        for name, (a, b) in zip(["rewards", "terminations", "truncations"], zip(mine, other)):
            assert a == dict(b), (name, steps)
        assert our.agents == their.agents
        assert_same_moment(our, their)
        steps, terminated = steps + 1, any(mine[1].values())
    return steps, terminated


def random_actions(seed):
    rng = np.random.default_rng(seed)

    def act(env, observations, step):
        return {agent: int(rng.integers(3)) for agent in env.agents}

    return act


def random_moves(seed, dtype=np.float32):
    rng = np.random.default_rng(seed)

    def act(env, observations, step):
        return {agent: rng.uniform(-1, 1, 1).astype(dtype) for agent in env.agents}

    return act


def wave(env, observations, step):
    """Pistons right of the ball go up, those left of it down: solves the game."""
    x = env.ball["x"]
    return {agent: 2 if 60 + 40 * i > x else 0 for i, agent in enumerate(env.agents)}


def continuous_wave(env, observations, step):
    return {agent: np.array([0.7 * (a - 1)], np.float32) for agent, a in wave(env, observations, step).items()}


@pytest.mark.parametrize("n", [10, 20])
def test_random_actions(n):
    our, their = ours(n), theirs(n, continuous=False)
    cut = 0
    for seed in range(20):
        steps, _ = play(our, their, random_actions(1000 + seed), seed)
        cut += steps == 125
    assert cut > 0


@pytest.mark.parametrize("n", [10, 20])
def test_random_moves(n):
    our, their = ours(n, continuous=True), theirs(n, continuous=True)
    for seed in range(5):
        play(our, their, random_moves(2000 + seed), seed)


@pytest.mark.filterwarnings("ignore")
def test_moves_in_double_precision():
    """PettingZoo computes in the precision of the action."""
    from pettingzoo.utils.env_logger import EnvLogger

    EnvLogger.suppress_output()
    our, their = ours(6, continuous=True, max_cycles=40), theirs(6, continuous=True, max_cycles=40)
    mixed = [random_moves(1, np.float64), random_moves(2)]
    play(our, their, mixed[0], 1)
    play(our, their, lambda env, seen, step: mixed[step % 2](env, seen, step), 2)
    EnvLogger.unsuppress_output()


@pytest.mark.parametrize("n", [2, 3, 10, 20])
@pytest.mark.parametrize("continuous", [False, True])
def test_solved_games_end(n, continuous):
    our, their = ours(n, continuous=continuous), theirs(n, continuous=continuous)
    act = continuous_wave if continuous else wave
    ended = [play(our, their, act, seed) for seed in range(5)]
    # A long row can take the ball too long now and then.
    assert sum(terminated and steps < 125 for steps, terminated in ended) >= 3


def test_resets_in_a_row():
    """A reset without a seed goes on with the generator, whether the episode was over or not."""
    our, their = ours(10), theirs(10, continuous=False)
    for seed in [3, None, None, 4, None, 3, None]:
        play(our, their, wave, seed)
        for env in (our, their):
            env.reset()
        assert_same_moment(our, their)
        actions = {agent: 1 for agent in our.agents}
        assert our.step(actions)[1] == dict(their.step(actions)[1])


@pytest.mark.parametrize("max_cycles", [1, 7, 300])
def test_max_cycles(max_cycles):
    our, their = ours(10, max_cycles=max_cycles), theirs(10, continuous=False, max_cycles=max_cycles)
    for seed in range(3):
        steps, terminated = play(our, their, random_actions(seed), seed)
        assert terminated or steps == max_cycles


def test_the_first_reset_may_have_no_seed():
    our = ours(4)
    our.reset()
    seed, ball = our.np_random_seed, our.ball
    our.reset(seed=seed)
    assert our.ball == ball
    our.reset()
    assert our.ball != ball
    assert isinstance(our.np_random, np.random.Generator)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_starts_are_drawn_as_one_by_one(n):
    """PettingZoo draws with `choice`, one piston at a time."""
    levels = np.arange(0, 32.0, 4)
    for seed in range(50):
        one, all_at_once = generator(seed), generator(seed)
        heights, ball = np.empty(n), np.empty(3)
        for _ in range(3):
            draw_start(all_at_once, heights, ball)
            assert heights.tolist() == [491 - one.choice(levels) for _ in range(n)]
            down, right = one.integers(-15, 16), one.integers(-30, 31)
            spin = [one.uniform(-6 * np.pi, 6 * np.pi) for _ in range(2)][1]
            assert ball.tolist() == [max(80 + 40 * n - 110 + right, 81), 410 + down, spin]


@pytest.mark.parametrize("continuous", [False, True])
def test_copies_are_games_of_their_own(continuous):
    """Copy k of a vector is PettingZoo's game of the seed + k, episode after episode."""
    n, copies, seed = 10, 5, 11
    vector = phalanx.vector_env("pistonball", copies, n=n, game="pettingzoo", continuous=continuous, threads=2)
    games = [theirs(n, continuous=continuous) for _ in range(copies)]
    vector.reset(seed=seed)
    for k, game in enumerate(games):
        game.reset(seed=seed + k)
    rng, ended = np.random.default_rng(5), 0
    for _ in range(200):
        x = vector.state()[:, n]
        actions = np.where(60 + 40 * np.arange(n) > x[:, None], 2, 0)
        actions = np.where(rng.random((copies, n)) < 0.1, 1, actions)
        if continuous:
            actions = (0.9 * (actions - 1)).astype(np.float32)
        _, rewards, terminations, truncations, _ = vector.step(actions)
        for k, game in enumerate(games):
            mine = {
                a: actions[k, i : i + 1] if continuous else int(actions[k, i]) for i, a in enumerate(game.agents)
            }
            _, other, terminated, truncated, _ = game.step(mine)
            assert rewards[k].tolist() == list(other.values())
            assert terminations[k] == terminated["piston_0"] and truncations[k] == truncated["piston_0"]
            if not game.agents:
                game.reset()
                ended += 1
            state = vector.state()[k]
            assert state[:n].tolist() == [piston.position[1] for piston in game.unwrapped.pistonList]
            assert state[n : n + 2].tolist() == list(game.unwrapped.ball.position)
    assert ended > 10


def test_the_papers_rewards_on_the_same_ball():
    """Both games have the same starts and physics; the paper's rewards are local, half a pixel's worth to the left."""
    our, paper = ours(10), phalanx.env("pistonball", n=10, game="paper")
    act = random_actions(9)
    our.reset(seed=2)
    paper.reset(seed=2)
    paid = 0
    while paper.agents:
        before = paper.ball["x"]
        actions = act(our, None, 0)
        _, rewards, _, _, infos = paper.step(actions)
        our.step(actions)
        assert paper.ball == our.ball and paper.agents == our.agents
        assert infos["piston_3"]["height"] * 16 % 1 == 0
        left = int(before - 40) - int(paper.ball["x"] - 40)
        near = [i for i in range(10) if rewards[f"piston_{i}"] != 0]
        if near and left > 0:
            assert near == list(range(near[0], near[-1] + 1)) and len(near) <= 5
            assert set(rewards.values()) <= {0.0, 0.5 * left, 0.5 * left - 1}
            paid += 1
    assert paid > 0


def test_observations_by_hand():
    """Heights of the neighbourhood, then offset, lower edge, omega, vx and vy of the ball; four moments, newest first."""
    env = ours(6, kappa=1)
    observations, _ = env.reset(seed=5)
    frames = [env.state()]
    for _ in range(6):
        for i, agent in enumerate(env.possible_agents):
            group = env.neighbourhoods[i]
            seen = observations[agent].reshape(4, len(group) + 5)
            for row, state in zip(seen, [frames[max(len(frames) - 1 - k, 0)] for k in range(4)]):
                heights, (x, y, vx, vy, _, omega) = state[:6], state[6:].astype(np.float32)
                assert row[: len(group)].tolist() == [2 * (491 - heights[m]) / 64 - 1 for m in group]
                x, y = float(x), float(y)
                above = [m for m in range(6) if x - 40 < 80 + 40 * m and x + 40 > 40 + 40 * m]
                offset = x - (60 + 40 * i)
                if set(above) & set(group):
                    ball = [offset / 40, 2 * (491 - y - 45) / 64 - 1, omega / 8, vx / 15, vy / 8]
                else:
                    ball = [-3 if offset < 0 else 3, -3, 0, 0, 0]
                np.testing.assert_array_equal(row[len(group) :], np.array(ball, np.float32))
        observations, *_ = env.step({agent: (i * 7) % 3 for i, agent in enumerate(env.agents)})
        frames.append(env.state())
