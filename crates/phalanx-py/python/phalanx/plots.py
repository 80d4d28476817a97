"""Figures of a run, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .runs import Run

#: Colours that are told apart by everybody (Okabe and Ito).
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def figure(run: Run, *, show_agents: bool = True) -> Figure:
    """Curves over iterations, and every agent's constraints."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    metrics, outcome = run.metrics, run.outcome
    has_return = outcome["return"] is not None
    has_agents = show_agents and len(run.agents.get("agent", ())) > 0
    panels = [
        "objective",
        *(["return"] if has_return else []),
        "violation_total",
        *(["agents"] if has_agents else []),
    ]
    drawn, axes = plt.subplots(
        1, len(panels), figsize=(3.6 * len(panels), 3.0), layout="constrained", squeeze=False
    )
    for axis, panel in zip(axes[0], panels, strict=True):
        if panel == "agents":
            _agents(axis, run)
            continue
        values = metrics[panel]
        axis.plot(metrics["iteration"], values, color=GREY, alpha=0.35, linewidth=0.8)
        marker = "o" if len(values) == 1 else None
        axis.plot(
            metrics["iteration"], _smooth(values), color=ORANGE if "violation" in panel else BLUE, marker=marker
        )
        axis.axhline(outcome[panel], color=GREEN, linestyle="--", linewidth=1, label="final, fresh episodes")
        axis.set(xlabel="iteration", title="total violation" if "violation" in panel else panel)
        axis.legend(frameon=False, fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    drawn.suptitle(run.path.name, fontsize="medium")
    plt.close(drawn)
    return drawn


def _smooth(values: Any) -> Any:
    """A running mean over a fortieth of the run."""
    width = max(1, len(values) // 40)
    kernel = np.ones(width)
    return np.convolve(values, kernel, mode="same") / np.convolve(np.ones(len(values)), kernel, mode="same")


def _agents(axis: Any, run: Run) -> None:
    table = run.agents
    for number, name in enumerate(dict.fromkeys(table["constraint"].tolist())):
        chosen = table["constraint"] == name
        broken = table["violation"][chosen] > 0
        x, y = table["agent"][chosen], table["value"][chosen]
        marker = "osD^v"[number % 5]
        axis.scatter(x[~broken], y[~broken], color=BLUE, marker=marker, s=18, label=f"{name}, kept")
        if broken.any():
            axis.scatter(x[broken], y[broken], color=ORANGE, marker=marker, s=18, label=f"{name}, broken")
        bounds = zip(table["bound"][chosen].tolist(), table["threshold"][chosen].tolist(), strict=True)
        for bound, threshold in dict.fromkeys(bounds):
            label = f"{name} {bound.replace('_', ' ')} {threshold:g}"
            axis.axhline(threshold, color=GREY, linestyle=":", linewidth=1, label=label)
    axis.set(xlabel="agent", title="constraints")
    axis.legend(frameon=False, fontsize="small")
    axis.spines[["top", "right"]].set_visible(False)
