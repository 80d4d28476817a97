"""Configurations whose models see what their world shows."""

from __future__ import annotations

from typing import Any

from ._phalanx import ConfigError, Configuration
from .environment import Adapter
from .own import Own

#: What environments are trained with unless somebody says something else.
SEEING = {"policy.kind": "network", "critic.kind": "returns"}
#: Kinds that read observations; all others read cells.
POLICIES, CRITICS = ("network",), ("network", "returns")
#: Numbers of an observation that neural networks can read.
WIDEST = 65536


def configured(source: Any, settings: dict[str, Any], own: Own) -> Configuration:
    """The configuration; models that see nothing of an environment are refused."""
    if own.adapter is None:
        return Configuration(source, settings, own.registry, {})
    try:
        config = Configuration(source, settings, own.registry, SEEING)
    except ConfigError as error:
        # The critic that was chosen here may not go with a blind policy, which is what is wrong then.
        policy = _policy_chosen(source, settings, own)
        if max(own.adapter.cells) == 1 and policy not in POLICIES:
            raise _blind("policy", policy, POLICIES) from None
        raise error from None
    _check(config, own.adapter)
    return config


def _policy_chosen(source: Any, settings: dict[str, Any], own: Own) -> str:
    """The kind of policy that somebody chose, if it goes with the library's own critic."""
    try:
        return Configuration(source, settings, own.registry, {"policy.kind": SEEING["policy.kind"]}).policy_kind
    except ConfigError:
        return SEEING["policy.kind"]


def _check(config: Configuration, adapter: Adapter) -> None:
    policy, critic = config.policy_kind, config.critic_kind
    if max(adapter.cells) == 1:
        if policy not in POLICIES:
            raise _blind("policy", policy, POLICIES)
        # MAPPO has critics of its own, and exact critics are refused for another reason.
        if critic not in (*CRITICS, "exact") and config.algorithm != "mappo-l":
            raise _blind("critic", critic, CRITICS)
    if policy in POLICIES or critic in CRITICS:
        widest = max(adapter.widths)
        if widest > WIDEST:
            agent = adapter.agents[adapter.widths.index(widest)]
            raise ConfigError(
                f"observations: {agent!r} has {widest} numbers; networks read at most {WIDEST}: shrink them with scale=, "
                "e.g. scale=lambda numbers: numbers[::16]"
            )


def _blind(section: str, kind: str, seeing: tuple[str, ...]) -> ConfigError:
    allowed = " or ".join(f'{section}={{"kind": "{name}"}}' for name in seeing)
    return ConfigError(
        f"{section}.kind: `{kind}` sees cells alone, and there is one: it would learn blind; use {allowed}, which see "
        "observations, or make cells of them with cell="
    )
