"""Keys of settings: those that types name, and those that the library takes."""

import re
import typing

import phalanx
import pytest
from phalanx import settings

#: Sections of a configuration whose keys do not depend on a kind, with their types.
SECTIONS = [
    ("policy", settings.PolicySettings),
    ("critic", settings.CriticSettings),
    ("dual", settings.DualSettings),
    ("actor", settings.ActorSettings),
    ("safety", settings.SafetySettings),
    ("links", settings.LinkSettings),
    ("mappo", settings.MappoSettings),
    ("evaluation", settings.EvaluationSettings),
    ("checkpoint", settings.CheckpointSettings),
    ("output", settings.OutputSettings),
]


def keys(kind):
    """Those that a type names."""
    return set(typing.get_type_hints(kind, include_extras=True))


def known(error):
    """Names that an error message offers."""
    listed = str(error.value).partition("expected ")[2]
    return set(re.findall(r"`(\w+)`", listed))


def refused(**given):
    """What the library takes, as it says when it is given something else."""
    with pytest.raises(phalanx.ConfigError, match="unknown field") as error:
        phalanx.config("synthetic", **given)
    return known(error)
