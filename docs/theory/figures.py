#!/usr/bin/env python3
"""The numbers and figures of docs/theory.md: trains with `phalanx`, writes tables (CSV) and drawings (SVG) beside this file.

    cargo build --release && python3 docs/theory/figures.py target/release/phalanx [FIGURE …]

Tables need nothing but Python; drawings need matplotlib, and are left out without it.
"""

import csv
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Smaller numbers are rounding errors: they differ between machines.
ROUNDING = 1e-13


def phalanx(*arguments):
    subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def train(config, **settings):
    """The folder of a run of docs/theory/<config>.toml; `dual__eta_mu=3` sets dual.eta_mu."""
    sets = [f"{key.replace('__', '.')}={value}" for key, value in settings.items()]
    print(config, *sets, flush=True)
    folder = SCRATCH / f"{config} {' '.join(sets)}"
    flags = [word for setting in [*sets, "checkpoint.seconds=inf"] for word in ("--set", setting)]
    phalanx("train", HERE / f"{config}.toml", "--out", folder, *flags)
    return folder


def column(run, name):
    with open(run / "metrics.csv", newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file)]


def number(x):
    """Six digits."""
    if math.isnan(x):
        return ""
    if abs(x) < ROUNDING:
        return "0"
    x = float(f"{x:.5e}")
    # Mantissa and exponent as the older tables have them.
    return f"{x:.0f}" if x == round(x) else repr(x).replace("e-0", "e-")


def write(name, header, rows):
    lines = [header, *(",".join(map(number, row)) for row in rows)]
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n")


def draw(name, title, *panels):
    """A panel is (x label, y label, scales, curves); a curve is (label, points, style of the line)."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return print(f"no matplotlib: {name}.svg stays as it is")
    figure, axes = pyplot.subplots(1, len(panels), figsize=(6 * len(panels), 4.5), squeeze=False)
    for axis, (x, y, (x_scale, y_scale), curves) in zip(axes[0], panels):
        for label, points, style in curves:
            floor = ROUNDING if y_scale == "log" else -math.inf
            axis.plot([p[0] for p in points], [max(p[1], floor) for p in points], style, label=label)
        axis.set(xlabel=x, ylabel=y, xscale=x_scale, yscale=y_scale)
        if curves[0][0]:
            axis.legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg")


def paper(experiment, **tables):
    """Experiments that `phalanx paper` makes: their tables, drawings and models are taken over."""
    print("paper", experiment, flush=True)
    phalanx("paper", experiment, "--out", SCRATCH / "paper")
    folder = SCRATCH / "paper" / experiment
    for table, name in tables.items():
        shutil.copy(folder / f"{table}.csv", HERE / f"{name}.csv")
    for file in [*folder.glob("figures/*.svg"), *folder.glob("models/*")]:
        shutil.copy(file, HERE)


def truncation():
    paper("truncation", results="truncation", counterexample="counterexample")


def rate():
    paper("rate", results="rate")


def limit():
    """What is left of a violation in the limit, against η_μ."""
    kinds, rows = ["proximal", "descent", "pi"], []
    for eta in [3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0]:
        row = [eta, predicted_violation(eta)]
        for kind in kinds:
            run = train("limit", dual__kind=kind, dual__eta_mu=eta, dual__eta_integral=0.1 * eta,
                        actor__eta_theta=30.0 / eta, iterations=20000)
            row.append(max(column(run, "violation_max")[-100:]))
        rows.append(row)
    write("limit", "eta_mu,predicted,proximal,descent,pi", rows)
    labels = ["predicted for proximal: μ/η_μ", *kinds]
    curves = [(label, [(row[0], row[k + 1]) for row in rows], "o-" if k else "--") for k, label in enumerate(labels)]
    draw("limit", "Violation in the limit: worst agent over the last 100 of 20 000 iterations",
         ("η_μ", "violation", ("log", "log"), curves))


def predicted_violation(eta):
    """That of agent 1 at the maximum of F − (η/2) Σ max(0, −g)² on the line of limit.toml, in closed form but for a root.
    Agent 1's share d of time in state 1 earns 0.1 itself and γ through agent 0, which copies it."""
    gamma, least = 0.9, 0.5

    def violation(d):
        return max(0.0, least + d * math.log(d) + (1 - d) * math.log(1 - d))

    def price(d):
        # The derivative of the penalty is −μ·dH/dd with μ = η·violation, and −dH/dd = logit d.
        return eta * violation(d) * math.log(d / (1 - d))

    low, high = 0.5, 1 - 1e-12
    for _ in range(100):
        middle = 0.5 * (low + high)
        gain = gamma * (1 - price(0.5 * (1 - gamma) + gamma * middle)) + 0.1 - price(middle)
        low, high = (middle, high) if gain > 0 else (low, middle)
    return violation(low)


def drift():
    """Where agents go with truncated gradients, once they have been at the optimum."""
    rows, objectives, shares = [], [], []
    for kind, kappa_q in [("averaged", 1), ("fixed", 1), ("averaged", 2)]:
        label, share = f"{kind}, κ_q = {kappa_q}", []
        # Step sizes are constant, so that a short run is the beginning of a long one.
        for iterations in [500, 1000, 2000, 4000, 6000, 8000, 12_000, 16_000]:
            run = train("drift", critic__truncation=kind, kappa_q=kappa_q, iterations=iterations)
            phalanx("occupancy", run, "--out", run / "occupancy.json", "--episodes", 1000)
            cells = json.loads((run / "occupancy.json").read_text())["lambda"]
            d = [(row[2] + row[3]) / sum(row) for row in cells]
            objective = column(run, "objective")
            rows.append([kind == "averaged", kappa_q, iterations, objective[-1], column(run, "E")[-1], d[2], d[3]])
            share.append((iterations, d[2]))
        # The climb to the optimum would hide what comes after it.
        objectives.append((label, list(enumerate(objective))[200::20], "-"))
        shares.append((label, share, "o-"))
    write("drift", "averaged,kappa_q,T,objective,E,d_2,d_3", rows)
    draw("drift", "The drift away from the optimum: line of 5 agents, γ = 0.99, κ = 1",
         ("iteration", "objective; the optimum is 0.22348", ("linear", "linear"), objectives),
         ("iteration", "agent 2's share of time in state 1", ("linear", "linear"), shares))


def multipliers():
    """E and violation at the end, against the upper end of multipliers."""
    rows = []
    for mu_max in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.2, 1.5]:
        run = train("limit", dual__kind="pi", dual__eta_mu=30.0, dual__eta_integral=3.0, actor__eta_theta=1.0,
                    dual__mu_max=mu_max)
        rows.append([mu_max, column(run, "E")[-1], column(run, "violation_max")[-1]])
    write("multipliers", "mu_max,E,violation_max", rows)
    x = "largest multiplier allowed, dual.mu_max"
    draw("multipliers", "E cannot see what the multipliers cannot pay for; the multiplier needed is 0.72",
         (x, "largest violation at the end", ("linear", "linear"), [("", [(r[0], r[2]) for r in rows], "o-")]),
         (x, "E at the end; less than 10⁻¹³ is drawn there", ("linear", "log"), [("", [r[:2] for r in rows], "o-")]))


if __name__ == "__main__":
    PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "phalanx"
    FIGURES = {f.__name__: f for f in [truncation, rate, limit, drift, multipliers]}
    with tempfile.TemporaryDirectory() as folder:
        SCRATCH = Path(folder)
        for name in sys.argv[2:] or FIGURES:
            FIGURES[name]()
