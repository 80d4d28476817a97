"""How many steps of pistonball per second: PettingZoo's, ours through the same API, and ours as arrays.

    python crates/phalanx-py/benches/env_speed.py [seconds per measurement]

Actions are random and drawn beforehand; resets at the ends of episodes count. One thread, except where it says otherwise.
"""

import os
import sys
import time
import warnings

import numpy as np

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import phalanx

ACTIONS = 512


def dict_steps(env, seconds):
    """Steps per second of an environment of PettingZoo."""
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    agents = env.possible_agents
    chosen = [dict(zip(agents, row.tolist())) for row in rng.integers(0, 3, (ACTIONS, len(agents)))]
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for actions in chosen[:64]:
            env.step(actions)
            if not env.agents:
                env.reset()
        steps += 64
        chosen = chosen[64:] + chosen[:64]
    return steps / (time.perf_counter() - start)


def array_steps(env, seconds):
    """Steps per second of all copies together."""
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, 3, (ACTIONS, env.copies, len(env.possible_agents)), dtype=np.uint8)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for actions in chosen[:32]:
            env.step(actions)
        steps += 32 * env.copies
        chosen = np.roll(chosen, 32, axis=0)
    return steps / (time.perf_counter() - start)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pettingzoo.butterfly import pistonball_v6
    print(f"{'n':>3}  {'environment':<42} {'steps/s':>10} {'times':>7}")
    for n in (10, 20):
        theirs = dict_steps(pistonball_v6.parallel_env(n_pistons=n, continuous=False), seconds)
        rows = [("pistonball_v6.parallel_env", theirs)]
        rows.append(
            ("phalanx.env", dict_steps(phalanx.env("pistonball", n=n, game="pettingzoo", kappa=1), seconds))
        )
        for copies, threads in ((1, 1), (64, 1), (64, 2)):
            env = phalanx.vector_env("pistonball", copies, threads=threads, n=n, game="pettingzoo", kappa=1)
            name = f"phalanx.vector_env, {copies} cop{'y' if copies == 1 else 'ies'}"
            rows.append((name + (f", {threads} threads" if threads > 1 else ""), array_steps(env, seconds)))
        for name, speed in rows:
            print(f"{n:>3}  {name:<42} {speed:>10,.0f} {speed / theirs:>7.0f}")


if __name__ == "__main__":
    main()
