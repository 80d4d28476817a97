"""Settings of a run as types, for editors and type checkers. What they mean is in the book's reference of the configuration;
`tests/test_settings.py` holds the names in step with what the library knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from .utility import Utility
from .world import World

_Numbers: TypeAlias = "Sequence[Any] | NDArray[np.float64]"
_Schedule: TypeAlias = "str | Mapping[str, Any]"
#: Where a run is trained.
Device: TypeAlias = Literal["cpu", "cuda", "auto", "emulated"]


#: A key of `epidemic` that is a word of Python.
_Import = TypedDict("_Import", {"import": float}, total=False)


class TownSettings(TypedDict, total=False):
    """`[world.town]`: a town that is made up, for the world `junctions`."""

    grid: Sequence[int]
    road_length: float
    vehicles_per_hour: float
    missing: float
    shift: float
    seed: int


class WorldSettings(_Import, total=False):
    """`[world]`: the kind, and the keys of that kind."""

    kind: str | World
    n: int
    start: str | float
    mixing: float
    reward: Literal["present", "next"]
    rows: int
    columns: int
    deadline: int
    seed: int
    arrival: float | Sequence[float]
    success: float | Sequence[float]
    game: Literal["paper", "pettingzoo"]
    scenario: Literal["slowdown", "catchup", "braking", "both"]
    model: Literal["sis", "sirs"]
    infection: float
    recovery: float
    treated_recovery: float
    waning: float
    protection: float
    protect_cost: float
    treat_cost: float
    roadnet: str | PathLike[str]
    flow: str | PathLike[str]
    decision: int
    yellow: int
    phases: int
    jitter: float
    demand: float
    seconds: int
    cells: Literal["traffic", "rules"]
    rules: Literal["free", "mask"]
    town: TownSettings
    file: str | PathLike[str]
    allow_infeasible: bool


class NetworkSettings(TypedDict, total=False):
    """`[network]`: links other than the world's own."""

    kind: Literal[
        "line",
        "ring",
        "grid",
        "star",
        "complete",
        "geometric",
        "erdos_renyi",
        "small_world",
        "scale_free",
        "edges",
    ]
    rows: int
    columns: int
    radius: float
    probability: float
    neighbours: int
    rewire: float
    links: int
    seed: int
    file: str | PathLike[str]


class UtilitySettings(TypedDict, total=False):
    """`[objective]`."""

    kind: str | Utility
    channel: str
    r: _Numbers
    expert: _Numbers
    lo: _Numbers
    hi: _Numbers
    a: _Numbers
    b: _Numbers
    center: _Numbers
    radius: float
    power: int
    scale: float
    offset: float
    shadow_scale: float
    shadow_shift: float
    file: str | PathLike[str]


class ConstraintSettings(UtilitySettings, total=False):
    """One of `[[constraint]]`: a utility with a bound."""

    at_least: float
    at_most: float
    name: str
    agents: Sequence[int]
    group: Sequence[int] | str
    states: Sequence[int]
    event: str
    budget: float
    level: float
    margin: float | Sequence[float]
    allow_infeasible: bool


class PolicySettings(TypedDict, total=False):
    """`[policy]`."""

    kind: Literal["softmax", "direct", "linear", "network", "shared"]
    init_std: float
    box: Sequence[float]
    features: str
    world_features: bool
    embedding: int
    row_hidden: int
    hidden: Sequence[int]
    output_gain: float
    kinds: str | Sequence[int]
    reads: Literal["states", "view"]


#: `[critic]`. One of its keys is a word of Python.
CriticSettings = TypedDict(
    "CriticSettings",
    {
        "kind": Literal["td", "lstd", "montecarlo", "linear", "network", "returns", "exact"],
        "steps": int,
        "start": str,
        "step": str,
        "h": float,
        "k1": float,
        "eta_q": float,
        "ridge": float,
        "on": str,
        "episode": int,
        "solver": str,
        "average": float,
        "features": str,
        "world_features": bool,
        "lambda": float,
        "embedding": int,
        "row_hidden": int,
        "hidden": Sequence[int],
        "optimizer": Literal["sgd", "adam"],
        "learning_rate": float,
        "minibatch": int,
        "passes": int,
        "loss": str,
        "polyak": float,
        "clip": float,
        "sharing": Literal["none", "kind"],
        "twin": bool,
        "merged": bool,
        "truncation": str,
    },
    total=False,
)


class DualSettings(TypedDict, total=False):
    """`[dual]`."""

    kind: Literal["proximal", "descent", "pi"]
    eta_mu: float
    eta_integral: float
    mu_max: float
    mu_0: float
    centre: float
    margin: float
    schedule: _Schedule


class ActorSettings(TypedDict, total=False):
    """`[actor]`."""

    optimizer: Literal["sgd", "adam"]
    eta_theta: float
    rule: str
    baseline: Literal["none", "mean", "counterfactual"]
    all_actions: bool
    entropy: float
    clip: float
    discount: bool
    normalise: bool
    mixing: float
    schedule: _Schedule
    entropy_schedule: _Schedule


class SafetySettings(TypedDict, total=False):
    """`[safety]`: what happens while learning."""

    shield: Literal["none", "revert"]
    shield_average: float
    shield_rate: float


class LinkSettings(TypedDict, total=False):
    """`[links]`: messages that are lost or late, and silent agents."""

    loss: float
    delay: int
    silent: Sequence[int]
    max_age: int


class MappoSettings(TypedDict, total=False):
    """`[mappo]`, for `algorithm="mappo-l"`."""

    scope: str
    actor_sees: str
    behaviour: str
    learning_rate: float
    critic_learning_rate: float
    epochs: int
    minibatches: int
    clip: float
    lambda_gae: float
    entropy: float
    lambda_0: float
    lambda_rate: float
    value_clip: float
    huber: float
    max_gradient: float
    advantage_epsilon: float
    embedding: int
    row_hidden: int
    hidden: Sequence[int]
    decay: _Schedule


class EvaluationSettings(TypedDict, total=False):
    """`[evaluation]`: the one that closes a run."""

    episodes: int
    max_agent_steps: int


class CheckpointSettings(TypedDict, total=False):
    """`[checkpoint]`."""

    seconds: float


class OutputSettings(TypedDict, total=False):
    """`[output]`."""

    agents: str | int


class EvaluatedSettings(TypedDict, total=False):
    """Every keyword of `phalanx.evaluate` that is a setting."""

    algorithm: Literal["primal-dual", "exact", "penalty", "mappo-l"]
    iterations: int
    seed: int | None
    device: Device
    gamma: float
    horizon: int
    batch: int
    kappa: int
    kappa_q: int
    kappa_g: int
    scaling: Literal["normalised", "paper", "authors"]
    raw_lives: bool
    occupancy_average: float
    # Sections may also be dicts of which nothing is known: those that a program has put together.
    world: WorldSettings | World | Mapping[str, Any]
    network: NetworkSettings | Mapping[str, Any]
    objective: UtilitySettings | Utility | str | Mapping[str, Any]
    constraint: Sequence[ConstraintSettings | Mapping[str, Any]] | ConstraintSettings | Mapping[str, Any]
    critic: CriticSettings | Mapping[str, Any]
    dual: DualSettings | Mapping[str, Any]
    actor: ActorSettings | Mapping[str, Any]
    safety: SafetySettings | Mapping[str, Any]
    links: LinkSettings | Mapping[str, Any]
    mappo: MappoSettings | Mapping[str, Any]
    evaluation: EvaluationSettings | Mapping[str, Any]
    checkpoint: CheckpointSettings | Mapping[str, Any]
    output: OutputSettings | Mapping[str, Any]


class Settings(EvaluatedSettings, total=False):
    """Every keyword of `phalanx.train` that is a setting. Names with dots (`**{"actor.eta_theta": 0.02}`) are not among them.

    >>> from phalanx import Settings
    >>> settings: Settings = {"kappa": 2, "dual": {"kind": "proximal"}}
    >>> sorted(Settings.__annotations__)[-3:]
    ['scaling', 'seed', 'world']
    """

    policy: PolicySettings | Mapping[str, Any]
