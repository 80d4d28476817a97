"""What a world in NumPy costs: the synthetic line of `tests/lines.py` against the built-in one, with the preset's settings.

    python crates/phalanx-py/benches/world_cost.py

Medians of five runs each, one after the other in turn; an iteration has 1,125 steps of all agents.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import phalanx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from lines import Line

#: Steps of an iteration: five trajectories of 125 steps, and 500 steps for the critic.
STEPS = 5 * 125 + 500


def milliseconds(world, iterations):
    """Of an iteration."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"iterations": iterations, "evaluation": {"episodes": 2}, "progress": False}
        run = phalanx.train("synthetic", world=world, out=Path(folder) / "run", **settings)
        return 1e3 * run.outcome["wall_s"] / iterations


def main():
    print(f"{'n':>6} {'NumPy, ms':>10} {'Rust, ms':>10} {'times':>6} {'µs per step in NumPy':>19}")
    for n, iterations in ((10, 60), (100, 40), (1000, 12), (10000, 3)):
        pairs = [(milliseconds(Line(n), iterations), milliseconds({"n": n}, iterations)) for _ in range(5)]
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"{n:>6} {ours:>10.2f} {theirs:>10.3f} {ours / theirs:>6.1f} {1e3 * ours / STEPS:>19.1f}", flush=True
        )


if __name__ == "__main__":
    main()
