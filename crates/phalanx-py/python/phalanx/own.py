"""Your own worlds and utilities, under the names that configurations have for them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _phalanx
from ._checks import listed, near, text
from ._phalanx import ConfigError
from .utility import Utility
from .world import World

if TYPE_CHECKING:
    from .environment import Adapter

#: Names that the library has given away.
WORLDS = frozenset(_phalanx.world_kinds())
UTILITIES = frozenset(["return", *_phalanx.utility_kinds()])


class Own:
    """What a run needs beside its folder."""

    def __init__(
        self, world: World | None = None, utilities: Iterable[Utility] = (), *, check: bool = True
    ) -> None:
        """`check`: whether the world is checked before it is used."""
        self._check = check
        self.registry = _phalanx.Own()
        self.adapter: Adapter | None = None
        self.world: World | None = None
        self._names: dict[str, Utility] = {}
        if world is not None:
            self.add_world(world)
        for utility in listed(utilities, "utilities"):
            self.add_utility(utility)

    @property
    def is_empty(self) -> bool:
        """Whether the user gave neither a world nor a utility."""
        return self.world is None and not self._names

    def add_world(self, world: World) -> str:
        """Its name."""
        if not isinstance(world, World):
            kind = type(world).__name__
            raise ConfigError(
                f"world: `{kind}`; give a dict, a phalanx.World, or what phalanx.from_pettingzoo makes"
            )
        name = _free(text(world.name, "name"), "world")
        self.registry.add_world(name, world._made(self._check))
        self.adapter, self.world = world.adapter, world
        return name

    def add_utility(self, utility: Utility) -> str:
        """Its name. Another utility of the same name gets a number behind it."""
        if not isinstance(utility, Utility):
            raise ConfigError(f"utilities: `{type(utility).__name__}`; give a phalanx.Utility")
        base, number = _free(utility.name, "utility"), 1
        name = base
        while self._names.setdefault(name, utility) is not utility:
            number += 1
            name = f"{base}-{number}"
        self.registry.add_utility(name, utility.built)
        return name

    @property
    def beside(self) -> str:
        """What `phalanx.resume` and `phalanx.load` need beside the path, in words."""
        return (", world=..." if self.world is not None else "") + (", utilities=[...]" if self._names else "")

    def check_names(self, path: Path, call: str) -> None:
        """Whether the user gave the world and utilities of the run in a folder; `call` is what should give them."""
        try:
            written = tomllib.loads((path / "config.toml").read_text())
        except ValueError as error:
            raise ConfigError(f"path: {path / 'config.toml'} is damaged: {error}") from None
        kind = written.get("world", {}).get("kind")
        known = None if self.world is None else self.world.name
        if kind not in WORLDS and kind != known:
            found = "" if known is None else f", not of `{known}`"
            raise ConfigError(
                f"world: {near(path)!r} is of a world of your own, `{kind}`{found}; give it: {call}(..., world=...)"
            )
        entries = [written.get("objective", {}), *written.get("constraint", [])]
        missing = [e["kind"] for e in entries if "kind" in e and e["kind"] not in UTILITIES | self._names.keys()]
        if missing:
            raise ConfigError(
                f"utilities: {near(path)!r} has a utility of your own, `{missing[0]}`; give it: {call}(..., utilities=[...])"
            )

    def settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The same settings with names in place of objects."""
        found = dict(settings)
        if isinstance(found.get("world"), World):
            found["world"] = {"kind": found["world"]}
        elif "world" in found and not isinstance(found["world"], Mapping):
            self.add_world(found["world"])
        if isinstance(found.get("world"), Mapping) and isinstance(found["world"].get("kind"), World):
            found["world"] = {**found["world"], "kind": self.add_world(found["world"]["kind"])}
        if "objective" in found:
            found["objective"] = self._named(found["objective"], "objective")
        if "constraint" in found:
            constraints = found["constraint"]
            constraints = [constraints] if isinstance(constraints, Mapping) else listed(constraints, "constraint")
            named = (self._named(entry, f"constraint.{k}") for k, entry in enumerate(constraints))
            found["constraint"] = list(named)
        return found

    def _named(self, entry: Any, field: str) -> Any:
        if isinstance(entry, Utility | str):
            entry = {"kind": entry}
        if not isinstance(entry, Mapping):
            raise ConfigError(f"{field}: `{type(entry).__name__}`; give a dict, or a phalanx.Utility")
        kind = entry.get("kind")
        if isinstance(kind, Utility):
            return {**entry, "kind": self.add_utility(kind)}
        if callable(kind):
            raise ConfigError(f"{field}.kind: is a function; wrap it in phalanx.Utility")
        return dict(entry)


def _free(name: str, what: str) -> str:
    if name in WORLDS | UTILITIES:
        raise ConfigError(f"{what}: `{name}` is the name of a built-in one; give another, name=…")
    return name
