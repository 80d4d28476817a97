"""Training called from Python against the command line: times of the training loop, in turn.

python crates/phalanx-py/benches/training_speed.py target/release/phalanx [pairs]
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import phalanx

CASES = [
    ("synthetic", {"iterations": 12000}, 1),
    ("synthetic", {"iterations": 12000}, 2),
    ("wireless", {"iterations": 200}, 1),
    ("pistonball", {"iterations": 60}, 1),
    ("paper/wireless", {"iterations": 15}, 1),
]


def from_python(preset, settings, threads, folder):
    run = phalanx.train(preset, **settings, threads=threads, out=folder / "here", progress=False)
    return run.outcome["wall_s"]


def from_the_command_line(program, preset, settings, threads, folder):
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    call = [program, "train", preset, *sets, "--threads", str(threads), "--out", folder / "there", "--json"]
    return json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["wall_s"]


def main():
    program, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    print(f"{'preset':<16} {'threads':>7} {'command line, s':>16} {'Python, s':>10} {'ratio':>6}")
    for preset, settings, threads in CASES:
        times = []
        for k in range(pairs):
            with tempfile.TemporaryDirectory() as name:
                # Whoever comes first has the quieter machine as often as not.
                if k % 2:
                    ours = from_python(preset, settings, threads, Path(name))
                theirs = from_the_command_line(program, preset, settings, threads, Path(name))
                if not k % 2:
                    ours = from_python(preset, settings, threads, Path(name))
                times.append((theirs, ours))
        theirs, ours = (statistics.median(column) for column in zip(*times, strict=True))
        ratio = statistics.median(b / a for a, b in times)
        print(f"{preset:<16} {threads:>7} {theirs:>16.3f} {ours:>10.3f} {ratio:>6.3f}", flush=True)


if __name__ == "__main__":
    main()
