"""How sure a policy is to be safe."""

from __future__ import annotations

import json
from typing import Any

from . import _checks
from ._checks import real, text, whole
from ._phalanx import Fixed
from .tables import Table


class Assessment:
    """A policy evaluated on fresh episodes, with a confidence interval around every constraint.

    Intervals hold together with probability `confidence`; they are corrected for their number and for the cut at the
    horizon. An agent is called safe or unsafe only if the whole interval is on one side of the bound, else it is undecided.
    """

    def __init__(self, text: str) -> None:
        found = json.loads(text)
        #: Everything, as `phalanx eval --json` prints it.
        self.details: dict[str, Any] = found
        #: One row per agent and constraint: value, lower, upper, threshold, verdict.
        self.constraints = Table.of_rows(found["constraints"])
        #: `safe`, `unsafe` or `undecided`, by agent.
        self.verdicts: list[str] = found["verdicts"]
        #: Exact values of the policy, where the graph is small and the policy a table.
        self.exact: dict[str, float] | None = found["exact"]
        self.episodes: int = found["episodes"]
        self.confidence: float = found["confidence"]

    @property
    def is_safe(self) -> bool:
        """Whether every agent is safe; trivially so if there are no constraints."""
        return all(verdict == "safe" for verdict in self.verdicts)

    def __getitem__(self, name: str) -> Any:
        return self.details[name]

    def __repr__(self) -> str:
        if not self.constraints:
            return f"<Assessment of {self.episodes} episodes: no constraints>"
        counts = {name: self.verdicts.count(name) for name in ("safe", "unsafe", "undecided")}
        told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"<Assessment of {self.episodes} episodes: {told} agents at confidence {self.confidence}>"

    def _repr_html_(self) -> str:
        return f"<p>{repr(self)[1:-1]}</p>{self.constraints._repr_html_()}"


def assessed(
    fixed: Fixed,
    episodes: Any,
    seed: Any,
    confidence: Any,
    threads: Any,
    seed_name: str = "seed",
    device: Any = "cpu",
) -> Assessment:
    """A fixed policy, assessed; arguments are checked here."""
    return Assessment(
        fixed.assess(
            whole(episodes, "episodes"),
            whole(seed, seed_name),
            real(confidence, "confidence"),
            _checks.threads(threads),
            text(device, "device"),
        )
    )
