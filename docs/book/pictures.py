#!/usr/bin/env python3
"""The pictures of the book in `src/pictures`: trains with `phalanx`, renders, and draws. Needs nothing but Python.

    cargo build --release && python3 docs/book/pictures.py target/release/phalanx RUNS [PICTURE …]

RUNS is a folder for the runs, of which those that are there are used again. All of it takes some minutes.
"""

from __future__ import annotations

import base64
import csv
import json
import math
import re
import struct
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent.resolve()
PICTURES = HERE / "src" / "pictures"
#: Okabe and Ito: colours that everybody can tell apart.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2", "1 2"]
WIDTH, HEIGHT = 760, 380


# Runs


def phalanx(*arguments: object) -> str:
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)], cwd=RUNS, check=True, capture_output=True, text=True
    )
    return done.stdout


def train(name: str, source: str, **settings: object) -> Path:
    """The run of that name; `dual__eta_mu=3` sets dual.eta_mu."""
    folder = RUNS / name
    if not (folder / "outcome.json").exists():
        print("train", name, flush=True)
        sets = [word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
        phalanx("train", source, "--out", name, "--json", *sets)
    return folder


def block(page: str, name: str) -> str:
    """Writes a file that a page shows; returns its name."""
    text = (HERE / "src" / page).read_text()
    found = re.search(rf"^```\w+ file={re.escape(name)}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no {name}"
    (RUNS / name).write_text(found[1])
    return name


def column(run: Path, name: str, window: int = 1) -> list[tuple[float, float]]:
    """A column of metrics.csv by iteration, as means of so many iterations."""
    with (run / "metrics.csv").open(newline="") as file:
        values = [float(row[name]) for row in csv.DictReader(file)]
    half = window // 2
    at = range(half, len(values) - half)
    return [(k, sum(values[k - half : k + half + 1]) / (2 * half + 1)) for k in at]


def outcome(run: Path) -> dict:
    return json.loads((run / "outcome.json").read_text())


# Drawings


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Drawing:
    """An SVG in the style of the program's own."""

    def __init__(self, title: str, subtitle: str, width: int = WIDTH, height: int = HEIGHT):
        self.size = (width, height)
        self.parts: list[str] = []
        self.text(16, 26, title, size=16, weight="bold")
        self.text(16, 46, subtitle, size=12, colour="#555555")

    def text(self, x, y, text, size=12, anchor="start", colour="#222222", weight="normal"):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(text)}</text>'
        )

    def line(self, points, colour, width=1.0, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'
        )

    def rectangle(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def circle(self, x, y, radius, colour, edge="none"):
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" stroke="{edge}" stroke-width="1.5"/>'
        )

    def save(self, name: str) -> None:
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="DejaVu Sans, Verdana, Arial, sans-serif">'
            '<rect width="100%" height="100%" fill="white"/>'
        )
        (PICTURES / f"{name}.svg").write_text(head + "\n" + "\n".join(self.parts) + "\n</svg>\n")


def ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five."""
    rough = (high - low) / 5
    step = 10.0 ** math.floor(math.log10(rough))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= rough)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def number(x: float) -> str:
    if x != 0 and (abs(x) >= 1e5 or abs(x) < 1e-3):
        return f"10{''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[int(d)] if d != '-' else '⁻' for d in str(round(math.log10(x))))}"
    return f"{x:.6g}"


def curves(name, title, subtitle, x_label, series, marks=(), bottom=None, dots=False):
    """Lines of (label, points); marks are (label, height), drawn across."""
    drawing = Drawing(title, subtitle)
    left, right, top, base = 62, WIDTH - 20, 88, HEIGHT - 46
    xs = [x for _, points in series for x, _ in points]
    ys = [y for _, points in series for _, y in points] + [y for _, y in marks]
    low, high = min(ys) if bottom is None else bottom, max(ys)
    low, high = low - (0 if bottom is not None else 0.06 * (high - low)), high + 0.06 * (high - low)

    def place(x, y):
        span = (max(xs) - min(xs)) or 1
        return left + (x - min(xs)) / span * (right - left), base - (y - low) / (high - low) * (base - top)

    for y in ticks(low, high):
        at = place(min(xs), y)[1]
        drawing.line([(left, at), (right, at)], "#e6e6e6")
        drawing.text(left - 8, at + 4, number(y), size=11, anchor="end")
    for x in ticks(min(xs), max(xs)):
        at = place(x, low)[0]
        drawing.text(at, base + 18, number(x), size=11, anchor="middle")
    drawing.line([(left, top), (left, base), (right, base)], "#333333")
    drawing.text((left + right) / 2, HEIGHT - 10, x_label, anchor="middle")
    at = 16.0
    for k, (label, points) in enumerate(series):
        colour, dash = COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]
        drawing.line([place(x, y) for x, y in points], colour, 2, dash)
        if dots:
            for x, y in points:
                drawing.circle(*place(x, y), 3.5, colour)
        drawing.line([(at, 68), (at + 26, 68)], colour, 2, dash)
        drawing.text(at + 32, 72, label)
        at += 54 + 7.4 * len(label)
    for label, y in marks:
        height = place(min(xs), y)[1]
        drawing.line([(left, height), (right, height)], "#222222", 1, "3 3")
        drawing.text(right - 4, height - 5, label, size=11, anchor="end")
    drawing.save(name)


def bars(name, title, subtitle, rows, unit="", logarithmic=False, digits="{:.4g}", mark=None):
    """Horizontal bars of (label, value) or (label, value, colour's number)."""
    left, step = 16 + 7.2 * max(len(row[0]) for row in rows), 26
    drawing = Drawing(title, subtitle, height=78 + step * len(rows))
    values = [row[1] for row in rows]
    low = 10.0 ** math.floor(math.log10(min(values)) - 0.2) if logarithmic else min(0.0, *values)
    high = max([*values, 0.0, *([mark[1]] if mark else [])])
    room = WIDTH - left - 110

    def place(value):
        if logarithmic:
            return left + math.log(value / low) / math.log(high / low) * room
        return left + (value - low) / (high - low) * room

    for k, (label, value, *rest) in enumerate(rows):
        y = 62 + step * k
        ends = sorted([place(value), left if logarithmic else place(0.0)])
        drawing.rectangle(ends[0], y, max(1.0, ends[1] - ends[0]), step - 8, COLOURS[rest[0] if rest else 0])
        drawing.text(left - 8, y + 13, label, anchor="end")
        drawing.text(ends[1] + 6, y + 13, digits.format(value) + unit)
    if mark:
        at = place(mark[1])
        drawing.line([(at, 54), (at, 62 + step * len(rows))], "#222222", 1, "3 3")
        drawing.text(at + 4, 54, mark[0], size=11)
    drawing.save(name)


def intervals(name, title, subtitle, groups, bound):
    """Intervals of (label, [(agent, lower, value, upper)]) beside a bound that is to be kept from above."""
    rows = [(label, k, row) for k, (label, found) in enumerate(groups) for row in found]
    ends = [x for *_, (_, lower, _, upper) in rows for x in (lower, upper)] + [bound]
    low, high = min(ends) - 0.004, max(ends) + 0.004
    left, right, step = 60, WIDTH - 20, 18
    drawing = Drawing(title, subtitle, height=120 + step * len(rows))

    def place(x):
        return left + (x - low) / (high - low) * (right - left)

    base = 88 + step * len(rows)
    drawing.rectangle(left, 84, place(bound) - left, base - 84, "#faeee6")
    for x in ticks(low, high):
        drawing.line([(place(x), 84), (place(x), base)], "#e6e6e6")
        drawing.text(place(x), base + 16, number(x), size=11, anchor="middle")
    at = 16.0
    for k, (label, _) in enumerate(groups):
        drawing.circle(at + 6, 68, 4, COLOURS[k])
        drawing.text(at + 16, 72, label)
        at += 40 + 7.4 * len(label)
    for number_of_row, (_, k, (agent, lower, value, upper)) in enumerate(rows):
        y = 96 + step * number_of_row
        drawing.line([(place(lower), y), (place(upper), y)], COLOURS[k], 2)
        drawing.circle(place(value), y, 3.5, COLOURS[k])
        drawing.text(left - 8, y + 4, str(agent), size=11, anchor="end")
    drawing.line([(place(bound), 84), (place(bound), base)], "#222222", 1, "3 3")
    drawing.save(name)


# PNG files of the program, as small ones with a palette


def pixels(path: Path) -> tuple[int, int, list[bytes]]:
    """Width, height and the colours of a PNG with 8 bits per channel."""
    data, at, found = path.read_bytes(), 8, b""
    width = height = channels = 0
    palette: list[bytes] = []
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8, f"{path}: {depth} bits"
            channels = {2: 3, 3: 1, 6: 4}[colour]
        elif kind == b"PLTE":
            palette = [body[k : k + 3] for k in range(0, len(body), 3)]
        elif kind == b"IDAT":
            found += body
        at += 12 + size
    raw, stride = zlib.decompress(found), width * channels
    out, above = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        rule, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for k in range(stride):
            a = row[k - channels] if k >= channels else 0
            b, c = above[k], above[k - channels] if k >= channels else 0
            if rule == 1:
                row[k] = (row[k] + a) & 255
            elif rule == 2:
                row[k] = (row[k] + b) & 255
            elif rule == 3:
                row[k] = (row[k] + (a + b) // 2) & 255
            elif rule == 4:
                guess = a + b - c
                near = min((abs(guess - a), 0, a), (abs(guess - b), 1, b), (abs(guess - c), 2, c))[2]
                row[k] = (row[k] + near) & 255
        above = row
        cells = [bytes(row[k : k + 3]) for k in range(0, stride, channels)] if channels > 1 else []
        out += cells or [palette[k] for k in row]
    return width, height, out


def shrink(source: Path, name: str, width: int) -> None:
    """A PNG as a smaller one, at most that wide, with a palette."""
    old_width, old_height, old = pixels(source)
    width = min(width, old_width)
    height = round(old_height * width / old_width)
    colours = []
    for y in range(height):
        rows = range(y * old_height // height, max(y * old_height // height + 1, (y + 1) * old_height // height))
        for x in range(width):
            columns = range(x * old_width // width, max(x * old_width // width + 1, (x + 1) * old_width // width))
            cells = [old[row * old_width + k] for row in rows for k in columns]
            colours.append(bytes(sum(cell[c] for cell in cells) // len(cells) for c in range(3)))

    def rough(colour: bytes) -> bytes:
        return bytes(255 if c >= 252 else (c + 4) // 8 * 8 for c in colour)

    def far(a: bytes, b: bytes) -> int:
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    exact: dict[bytes, Counter] = {}
    for colour, count in Counter(colours).items():
        exact.setdefault(rough(colour), Counter())[colour] += count
    often = sorted(exact, key=lambda key: -sum(exact[key].values()))
    palette = [exact[key].most_common(1)[0][0] for key in often[:96]]
    for key in often[96:]:
        if len(palette) < 128 and min(far(key, other) for other in palette) > 600:
            palette.append(exact[key].most_common(1)[0][0])
    nearest = {key: min(range(len(palette)), key=lambda k: far(key, palette[k])) for key in exact}
    places = bytes(nearest[rough(colour)] for colour in colours)
    rows = b"".join(b"\0" + places[y * width : (y + 1) * width] for y in range(height))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    body = [(b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    (PICTURES / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in body))


def rendered(name: str, width: int, source: str, *arguments: object) -> None:
    phalanx("render", source, *arguments, "--out", f"{name}.png")
    shrink(RUNS / f"{name}.png", name, width)


# The pictures


def radii():
    drawing = Drawing(
        "One agent and its radii", "kappa = 1, kappa_q = 2, kappa_g = 1 around agent 4 of a line", height=264
    )
    xs = [70 + 77 * k for k in range(9)]
    drawing.line([(xs[0], 96), (xs[-1], 96)], "#999999", 2)
    near = {0: COLOURS[0], 1: COLOURS[5], 2: "#cde6f5"}
    for k, x in enumerate(xs):
        drawing.circle(x, 96, 16, near.get(abs(k - 4), "white"), "#333333")
        drawing.text(x, 101, str(k), anchor="middle", colour="white" if k == 4 else "#222222")
    said = [
        (1, "kappa: its policy reads the states of 3, 4, 5"),
        (2, "kappa_q: its critic reads states and actions of 2 to 6, and it sums up their Q values"),
        (1, "kappa_g: of 3, 4, 5 it counts the constraints, too"),
    ]
    for row, (radius, text) in enumerate(said):
        y, colour = 140 + 44 * row, COLOURS[row]
        ends = xs[4 - radius] - 20, xs[4 + radius] + 20
        drawing.line([(ends[0], y - 7), (ends[0], y), (ends[1], y), (ends[1], y - 7)], colour, 2)
        drawing.text(xs[4], y + 17, text, anchor="middle")
    drawing.save("radii")


def flow():
    drawing = Drawing("One iteration", "lines of Algorithm 1; bold edges: agents talk to their neighbours", height=300)
    steps = [
        ("3", "sample", "states of neighbours", True), ("4", "count", "occupancy λ̃", False),
        ("5", "differentiate", "g̃ and shadow rewards", False), ("6", "look ahead", "truncated Q̃", True),
        ("7", "set prices", "multipliers μ", False), ("8", "talk and sum up", "policy gradient", True),
        ("9", "improve", "parameters θ", False),
    ]  # fmt: skip
    places = [(20 + 185 * k, 70) for k in range(4)] + [(575 - 185 * k, 190) for k in range(3)]
    for (x, y), (next_x, next_y) in zip(places, [*places[1:], places[0]], strict=True):
        if next_y == y:
            ends = [(x + 155, y + 40), (next_x, y + 40)] if next_x > x else [(x, y + 40), (next_x + 155, y + 40)]
        elif next_y > y:
            ends = [(x + 77, y + 80), (x + 77, next_y)]
        else:
            ends = [(x, y + 40), (97, y + 40), (97, next_y + 80)]
        drawing.line(ends, "#555555", 1.5)
        (before_x, before_y), (x, y) = ends[-2:]
        along, up = (x > before_x) - (x < before_x), (y > before_y) - (y < before_y)
        tip = [(x - 7 * along - 4 * up, y - 7 * up - 4 * along), (x, y), (x - 7 * along + 4 * up, y - 7 * up + 4 * along)]
        drawing.line(tip, "#555555", 1.5)
    for (x, y), (line, name, what, talks) in zip(places, steps, strict=True):
        drawing.rectangle(x, y, 155, 80, COLOURS[0] if talks else "#999999")
        inset = 3 if talks else 1
        drawing.rectangle(x + inset, y + inset, 155 - 2 * inset, 80 - 2 * inset, "#eef6fb" if talks else "white")
        drawing.text(x + 77, y + 22, f"line {line}", size=11, anchor="middle", colour="#555555")
        drawing.text(x + 77, y + 42, name, size=13, anchor="middle", weight="bold")
        drawing.text(x + 77, y + 62, what, size=11, anchor="middle")
    drawing.save("flow")


def dual_updates():
    series = []
    for kind in ("proximal", "descent", "pi"):
        run = train(f"synthetic-{kind}", "synthetic", dual__kind=kind)
        series.append((f"{kind}: {outcome(run)['violation_total']:.4f} at the end", column(run, "violation_total", 21)))
    curves(
        "dual-updates",
        "Total violation by dual.kind",
        "synthetic, seed 1: training batches, mean of 21 iterations; at the end: the closing evaluation",
        "iteration",
        series,
        bottom=0,
    )


def batches():
    run = train("synthetic-pi", "synthetic")
    curves(
        "batches",
        "The same run, by its batches and by its closing evaluation",
        "synthetic, seed 1; a batch has 5 episodes, the closing evaluation 400",
        "iteration",
        [("total violation of a batch, mean of 21 iterations", column(run, "violation_total", 21))],
        [(f"closing evaluation: {outcome(run)['violation_total']:.4f}", outcome(run)["violation_total"])],
        bottom=-0.01,
    )


def first_run():
    train("synthetic-pi", "synthetic")
    phalanx("plot", "synthetic-pi")
    shrink(RUNS / "synthetic-pi/plots/return.png", "synthetic-return", 760)
    shrink(RUNS / "synthetic-pi/plots/margins.png", "synthetic-margins", 760)
    rendered("synthetic-steps", 900, "synthetic-pi", "--only", "1,125")


def assessed(run, episodes):
    found = json.loads(phalanx("eval", run, "--episodes", episodes, "--json"))["constraints"]
    rows = [(row["agent"], row["lower"], row["value"], row["upper"]) for row in found]
    return sorted(rows)


def verdicts():
    train("synthetic-pi", "synthetic")
    train("synthetic-margin", "synthetic", dual__margin=0.02)
    intervals(
        "intervals",
        "State entropy of every agent, 99 % intervals of 1,600 episodes",
        "synthetic, seed 1; every interval must be right of the dashed bound for its agent to be safe",
        [
            ("trained on the bound 0.5", assessed("synthetic-pi", 1600)),
            ("trained with dual.margin = 0.02", assessed("synthetic-margin", 1600)),
        ],
        0.5,
    )


def bounds():
    points = []
    for bound in (0.3, 0.4, 0.5, 0.55, 0.6, 0.64, 0.66, 0.68):
        found = outcome(train(f"synthetic-bound{bound}", "synthetic", **{"constraint__0__at_least": bound}))
        points.append((bound, found["return"]))
    curves(
        "bounds",
        "What a bound costs",
        "synthetic, seed 1: return of the final policy against the bound on every agent's state entropy",
        "bound (ln 2 = 0.693 is the most that is possible)",
        [("return per agent and episode", points)],
        dots=True,
    )


def machines():
    block("own-model.md", "machines.json")
    config, rows = block("own-model.md", "machines.toml"), []
    for k, (name, bound) in enumerate([("free", 1), ("at most 0.2", 0.2), ("at most 0.19", 0.19)]):
        run = train(f"machines-{bound}", config, **{"constraint__0__at_most": bound})
        with (run / "agents.csv").open(newline="") as file:
            found = sorted(csv.DictReader(file), key=lambda row: int(row["agent"]))
        rows += [(f"machine {row['agent']}, {name}", float(row["value"]), k) for row in found]
    bars(
        "machines", "Share of time in which a machine is worn", "closing evaluation of 4,000 episodes", rows,
        digits="{:.3f}", mark=("the requirement: 0.2", 0.2),
    )  # fmt: skip


def seldom():
    train("seldom", block("safety.md", "seldom.toml"))
    phalanx("plot", "seldom")
    shrink(RUNS / "seldom/plots/margins.png", "seldom", 760)


def exact():
    train("exact", "exact")
    phalanx("plot", "exact")
    shrink(RUNS / "exact/plots/stationarity.png", "stationarity", 760)


def models():
    text = re.sub("<!--.*?-->", "", (HERE / "src" / "models.md").read_text())
    part = text[text.index("One change at a time") :]
    rows = re.findall(r"^\| (.*?) \| ([\d.]+), ([\d.]+), ([\d.]+) \|$", part, re.MULTILINE)
    plain = [(re.sub(r"`|, `(hidden|learning_rate|passes|eta_theta).*", "", label), values) for label, *values in rows]
    bars(
        "models", "Packets delivered, by one change at a time", "wireless grid of 4 × 4, mean of seeds 1, 2, 3",
        [(label if len(label) < 60 else label[:57] + " …", sum(map(float, values)) / 3) for label, values in plain], digits="{:.2f}",
    )  # fmt: skip


def shared():
    train("shared", "wireless-shared", iterations=600)
    rendered("shared", 760, "shared", "--only", "3")


def wireless():
    train("wireless", "wireless", iterations=3000)
    rendered("wireless", 900, "wireless", "--only", "1,2")


def pistonball():
    train("pistons", "pistonball", iterations=1500)
    rendered("pistonball", 900, "pistons", "--only", "1,5,9,13")


def platoon():
    train("platoon", "platoon-slowdown", iterations=500)
    rendered("platoon", 1200, "platoon", "--steps", "600", "--only", "1,100,200,400")


def epidemic():
    train("club", "epidemic", iterations=600)
    rendered("epidemic", 900, "club", "--only", "1,10,20,60")


def junctions():
    rendered("junctions", 900, block("junctions.md", "town.toml"), "--policy", "near-queue", "--steps", 40, "--only", "20,40")
    grid = ["--set", "world.town.grid=[2,2]", "--set", "horizon=60"]
    phalanx("eval", "junctions-fair", *grid, "--policy", "cycle", "--episodes", 5, "--map", "verdicts.png")
    shrink(RUNS / "verdicts.png", "verdicts", 600)


def sweep():
    phalanx("sweep", block("sweeps.md", "radius.toml"))
    rows: dict[str, list[float]] = {}
    with (RUNS / "runs/radius/summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            label = f"kappa = {row['kappa']}, at_least = {row['constraint.0.at_least']}"
            rows.setdefault(label, []).append(float(row["return"]))
    found = [(label, sum(values) / len(values), k // 2) for k, (label, values) in enumerate(rows.items())]
    bars("sweep", "Return by setting", "synthetic, 100 iterations, mean of three seeds", found, digits="{:.2f}")


def gpu():
    work = [
        ("line, n = 1,000", 0.69, 8.2), ("line, n = 100,000", 3.05, 18.5), ("line, n = 1,000,000", 26.4, 189.0),
        ("paper/wireless", 0.81, 1.83), ("wireless, 100 × 100", 23.4, 50.0), ("paper/wireless, 100 × 100", 107.0, 158.0),
    ]  # fmt: skip
    rows = [row for name, ours, jax in work for row in ((f"{name}: Phalanx", ours), (f"{name}: JAX", jax, 1))]
    bars(
        "gpu", "Milliseconds per iteration on one NVIDIA H200", "the table above; logarithmic", rows, " ms",
        logarithmic=True,
    )  # fmt: skip


def environments():
    rows = [
        ("pistonball_v6, n = 10", 163, 1), ("pistonball_v6, n = 20", 78, 1), ("phalanx.env, n = 10", 130000),
        ("phalanx.env, n = 20", 69600), ("vector_env, 64 copies, n = 10", 213000, 2),
        ("vector_env, 64 copies, n = 20", 117000, 2),
    ]  # fmt: skip
    bars(
        "environments", "Steps of the game per second on one core", "the table above; logarithmic", rows,
        logarithmic=True, digits="{:,.0f}",
    )  # fmt: skip


def own_world():
    sizes = [10, 100, 1000, 10000]
    curves(
        "own-world", "Times slower than the built-in world", "the table above: synthetic line, step in NumPy",
        "agents, as powers of ten",
        [("time in NumPy / time built in", [(math.log10(n), x) for n, x in zip(sizes, [54, 12, 3.9, 2.5], strict=True)])],
        bottom=0, dots=True,
    )  # fmt: skip


def spread():
    bars(
        "spread", "Return in simple_spread", "the numbers above; nearer to 0 is better",
        [("random actions", -27.0, 1), ("trained, first run", -23.7), ("trained, second run", -23.4), ("trained, third run", -24.9)],
        digits="{:.1f}",
    )  # fmt: skip


def scaling():
    found = {
        "line, κ = 0": [150.036, 165.062, 151.383], "line, κ = 1": [161.106, 162.834, 133.855],
        "line, κ = 2": [92.495, 86.506, 48.206],
    }  # fmt: skip
    curves(
        "scaling", "Million agent-steps per second of training", "the table above, two cores; agents as powers of ten",
        "log₁₀ n", [(name, list(zip([3, 4, 5], values, strict=True))) for name, values in found.items()],
        bottom=0, dots=True,
    )  # fmt: skip


def notebook():
    """The figure of `run.plot()` as the notebook has it."""
    cells = json.loads((HERE.parent / "tour.ipynb").read_text())["cells"]
    found = next(cell for cell in cells if "run.plot()" in "".join(cell["source"]))
    png = next(out["data"]["image/png"] for out in found["outputs"] if "image/png" in out.get("data", {}))
    (PICTURES / "run-plot.png").write_bytes(base64.b64decode(png))


ALL = [
    radii, flow, dual_updates, batches, first_run, verdicts, bounds, machines, seldom, exact, models, shared, wireless,
    pistonball, platoon, epidemic, junctions, sweep, gpu, environments, own_world, spread, scaling, notebook,
]  # fmt: skip

if __name__ == "__main__":
    PROGRAM, RUNS = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    RUNS.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(exist_ok=True)
    for picture in ALL:
        if len(sys.argv) == 3 or picture.__name__ in sys.argv[3:]:
            print(picture.__name__, flush=True)
            picture()
