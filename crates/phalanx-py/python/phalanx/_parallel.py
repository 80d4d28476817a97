"""Worlds as environments of PettingZoo. Imported by :func:`phalanx.env` only: nothing else needs PettingZoo."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv  # type: ignore[import-untyped, import-not-found, unused-ignore]

from ._checks import shown
from ._phalanx import ConfigError
from ._remade import Remade
from .boxes import Shown, boxes
from .envs import MOST_CYCLES, Array, Source, Starts, joint_state, make_games, whole_number
from .windows import Window

#: Frames per second of a film that plays as fast as the game.
_FPS = {"pistonball": 20, "platoon": 10}
_OTHER_FPS = 5
_RENDER_MODES = ["rgb_array", "human"]
_BALL = ("x", "y", "vx", "vy", "angle", "omega")


class WorldEnv(Remade, ParallelEnv):  # type: ignore[misc]
    """A world, all agents of which act at the same time; made by :func:`phalanx.env`. Copies by ``pickle`` are at no episode."""

    metadata: dict[str, Any]
    #: Names of all agents.
    possible_agents: list[str]
    #: Names of those that play: all of them until the episode ends, then none.
    agents: list[str]
    render_mode: str | None
    #: Whether actions are numbers from -1 to 1.
    continuous: bool

    def __init__(
        self,
        source: Source,
        *,
        kappa: int | None = None,
        max_cycles: int | None = None,
        continuous: bool = False,
        render_mode: str | None = None,
        network: dict[str, Any] | None = None,
        observations: Shown = "native",
        **world: Any,
    ) -> None:
        if not (render_mode is None or isinstance(render_mode, str) and render_mode in _RENDER_MODES):
            raise ConfigError(f'render_mode: {shown(render_mode)}; allowed are None, "rgb_array" and "human"')
        self._games = make_games(source, 1, 1, kappa, max_cycles, continuous, network, world)
        self._starts = Starts(self._games, 1)
        kind = self._games.kind
        self.metadata = {
            "name": f"phalanx_{kind}",
            "render_modes": _RENDER_MODES,
            "render_fps": _FPS.get(kind, _OTHER_FPS),
            "is_parallelizable": True,
        }
        self._boxes = boxes(observations, self._games)
        self._window = None if render_mode != "human" else Window(f"phalanx {kind}", self.metadata["render_fps"])
        self.render_mode = render_mode
        self.continuous = continuous
        self.possible_agents = self._games.names
        self.agents = []
        self._number = {name: i for i, name in enumerate(self.possible_agents)}
        self._is_pistonball = kind == "pistonball"
        self._has_views = self._games.has_views
        states, groups = self._games.states, self._games.groups
        self._states, self._groups, self._sizes = states, groups, self._games.sizes
        self._actions = self._games.action_counts
        # A byte holds every state; as the type of a space it has to hold their number.
        self._dtype: type[np.uint8 | np.int64] = np.uint8 if max(states) < 256 else np.int64
        self._observation_spaces: dict[str, spaces.Space[Any]] = {}
        self._action_spaces: dict[str, spaces.Space[Any]] = {}
        self.state_space: spaces.Space[Any] = (
            spaces.Box(-np.inf, np.inf, (len(states) + len(_BALL),), np.float64)
            if self._is_pistonball
            else spaces.Box(-np.inf, np.inf, (self._games.shared_size,), np.float32)
            if self._has_views
            else spaces.MultiDiscrete(states, dtype=self._dtype)
        )

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """What an agent may see, always the same object."""
        space = self._observation_spaces.get(agent)
        if space is None:
            i = self._number[agent]
            if self._boxes is not None and not self._has_views:
                space = spaces.Box(0.0, 1.0, (self._boxes.width,), np.float32)
            elif self._has_views:
                width = self._sizes[i] if self._boxes is None else self._boxes.width
                space = spaces.Box(-np.inf, np.inf, (width,), np.float32)
            else:
                space = spaces.MultiDiscrete([self._states[m] for m in self._groups[i]], dtype=self._dtype)
            self._observation_spaces[agent] = space
        return space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """What an agent may do, always the same object."""
        space = self._action_spaces.get(agent)
        if space is None:
            i = self._number[agent]
            space = (
                spaces.Box(-1.0, 1.0, (1,), np.float32) if self.continuous else spaces.Discrete(self._actions[i])
            )
            self._action_spaces[agent] = space
        return space

    @property
    def observation_spaces(self) -> dict[str, spaces.Space[Any]]:
        """By agent."""
        return {agent: self.observation_space(agent) for agent in self.possible_agents}

    @property
    def action_spaces(self) -> dict[str, spaces.Space[Any]]:
        """By agent."""
        return {agent: self.action_space(agent) for agent in self.possible_agents}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, float]]]:
        """Begins an episode; without a seed the next one of the same seed (the first time: of a random one).

        ``options`` are ignored.
        """
        self._starts.reset(seed)
        self.agents = self.possible_agents[:]
        self._show()
        return self._typed(self._games.observe_agents()), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, float]]]:
        """One step: observations, rewards, terminations, truncations and infos by agent."""
        observations, rewards, terminations, truncations, infos, over = self._games.step_agents(actions)
        if over:
            self.agents = []
        self._show()
        return self._typed(observations), rewards, terminations, truncations, infos

    def state(self) -> Array:
        """Everything there is: local states; in pistonball y of every piston, then x, y, vx, vy, angle and angular
        velocity of the ball; in platoon and junctions what agents share, as numbers."""
        state: Array = joint_state(self._games)[0]
        return state if self._has_views else state.astype(self._dtype, copy=False)

    def measures(self) -> dict[str, float]:
        """What the world measures of the episode so far, also after its end; in junctions ``travel_time``,
        ``travel_time_tables``, ``finished``, ``waiting_outside`` and ``longest_red``."""
        return dict(zip(self._games.measure_names, self._games.measures()[0].tolist()))

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The present moment as ``[row, column, colour]``, if ``render_mode`` is ``"rgb_array"``. A window, ``"human"``, shows
        it after every step by itself."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() of an environment that was made without a render_mode")
            return None
        if self._window is not None:
            self._show()
            return None
        return self._games.render()

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(self._games.render())

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()

    @property
    def max_cycles(self) -> int:
        """Steps after which an episode is cut."""
        return self._games.max_cycles

    @max_cycles.setter
    def max_cycles(self, max_cycles: int) -> None:
        self._games.max_cycles = whole_number("max_cycles", max_cycles, MOST_CYCLES)

    @property
    def kappa(self) -> int:
        """How many hops an agent sees."""
        return self._games.kappa

    @property
    def graph(self) -> list[tuple[int, int]]:
        """Links between agents, each once."""
        return self._games.graph

    @property
    def neighbourhoods(self) -> list[list[int]]:
        """Whom each agent sees, in the order in which it does."""
        return self._groups

    @property
    def ball(self) -> dict[str, float]:
        """The ball of pistonball: x, y (downwards), vx, vy, angle, omega."""
        return dict(zip(_BALL, self._physics()[-len(_BALL) :].tolist()))

    @property
    def heights(self) -> npt.NDArray[np.float64]:
        """y of every piston of pistonball: 491 is all the way down, 427 all the way up."""
        return self._physics()[: -len(_BALL)]

    @property
    def np_random(self) -> np.random.Generator | None:
        """What pistonball's starts are drawn from. Other worlds have no generator: their numbers depend on seed, episode,
        agent and step alone."""
        return self._starts.generators[0] if self._starts.generators else None

    @property
    def np_random_seed(self) -> int | None:
        """The seed, once there is one."""
        return self._starts.seed

    def _physics(self) -> npt.NDArray[np.float64]:
        if not self._is_pistonball:
            raise AttributeError(f"{self.metadata['name']} has no ball and no pistons")
        state: npt.NDArray[np.float64] = self._games.physics()[0]
        return state

    def _typed(self, observations: dict[str, Array]) -> dict[str, Array]:
        if self._boxes is not None:
            return {agent: self._boxes.one(seen) for agent, seen in observations.items()}
        if self._has_views or self._dtype is np.uint8:
            return observations
        return {agent: seen.astype(self._dtype) for agent, seen in observations.items()}

    def __repr__(self) -> str:
        return f"<{self.metadata['name']} of {len(self.possible_agents)} agents, kappa={self.kappa}>"

    def __str__(self) -> str:
        return repr(self)
