"""Settings as Python values: dicts, lists, NumPy's arrays and numbers in place of a file's text."""

import numpy as np
import phalanx
from choices import Choices, edited
from phalanx import ConfigError
from phalanx.models import configured
from phalanx.training import _prepared

#: As people write them.
SETTINGS = [
    {"kappa": 2, "iterations": 3, "seed": np.int64(4), "gamma": np.float32(0.5)},
    {"dual": {"kind": "proximal", "eta_mu": 3.0}, "actor": {"eta_theta": 0.1, "schedule": {"kind": "cosine"}}},
    {
        "constraint": [
            {"kind": "state_entropy", "at_least": 0.3},
            {"kind": "linear", "r": np.eye(2), "at_most": 40.0},
        ]
    },
    {"constraint": ({"kind": "return", "at_least": 1.0, "agents": np.arange(3)},)},
    {"world": {"kind": "line", "n": 4, "start": 0.5}, "network": {"kind": "ring"}},
    {"policy": {"kind": "linear"}, "critic": {"kind": "lstd", "ridge": 1e-3}, "evaluation": {"episodes": 5}},
    {"objective": {"kind": "state_entropy", "scale": 2.0}, "horizon": 5, "batch": 2, "kappa_q": 2},
    {"world.n": 5, "critic.kind": "td", "actor": {}, "output": {"agents": "all"}},
]
PRESETS = ["synthetic", "wireless", "epidemic"]
#: The same as dicts.
WHOLE = {name: phalanx.config(name) for name in PRESETS}
#: What first checks say: an unknown name, a wrong type.
FIRST = ("unknown field", "invalid type", "is no setting", "is no string", "is a section", "missing field")


def run(given):
    """How far the choices get: 0 the first check, 1 a later one, 2 accepted."""
    choices = Choices(given)
    source, settings = choices.pick(PRESETS), choices.pick(SETTINGS)
    for _ in range(choices.below(4)):
        if isinstance(settings, dict):
            settings = edited(settings, choices)
    if not isinstance(settings, dict) or not all(isinstance(key, str) for key in settings):
        # Python itself refuses keywords that are no names.
        return 0
    if choices.one_in(4):
        source = {**WHOLE[source], **settings}
        settings = {}
    try:
        own, base, named = _prepared(source, settings)
        configured(base, named, own)
    except (ConfigError, TypeError) as error:
        message = str(error)
        assert ": " in message, f"the message names nothing that was given: {message}"
        assert message.isprintable() and len(message) < 2000, f"the message is no line: {message[:2000]!r}"
        return 0 if any(words in message for words in FIRST) else 1
    return 2
