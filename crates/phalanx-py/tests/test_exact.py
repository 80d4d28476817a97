"""The exact mode against the reference values."""

import json
from pathlib import Path

import numpy as np
import phalanx
import pytest

REFERENCE = Path(__file__).parents[2] / "phalanx/tests/reference"
CASES = sorted(path for path in REFERENCE.rglob("*.json") if '"output"' in path.read_text()[: 10**7])


def same(found, expected, where):
    """Reference values are lists or numbers of the same shape."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key in found:
                same(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list) and expected and isinstance(expected[0], list | dict):
        for k, value in enumerate(expected):
            same(found[k], value, f"{where}[{k}]")
    elif isinstance(expected, int | float | list) and not isinstance(expected, bool):
        assert np.asarray(found, dtype=float) == pytest.approx(
            np.asarray(expected, dtype=float), rel=1e-6, abs=1e-9
        ), where


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_reference_values(path):
    case = json.loads(path.read_text())
    found = phalanx.exact(case)
    assert {"lambda", "grad_true", "F"} <= found.keys()
    assert isinstance(found["lambda"], np.ndarray | list)
    for key in ("lambda", "F", "f", "g", "grad_true", "state_occupancy", "Qf_hat_fixed"):
        if key in case["output"] and not isinstance(case["output"][key], dict):
            same(found[key], case["output"][key], key)
    assert phalanx.exact(path)["F"] == found["F"]


def test_there_are_references():
    assert len(CASES) >= 3


def test_theta_and_multipliers_as_keywords():
    case = json.loads(CASES[0].read_text())["input"]
    model = case["model"]
    zero = phalanx.exact(model, kappa=case["kappa"])
    theta = [np.asarray(row) + 0.3 * np.arange(np.size(row)) for row in case["theta"]]
    moved = phalanx.exact(model, kappa=case["kappa"], theta=theta)
    assert zero["F"] != moved["F"]


def test_wrong_models_are_named():
    good = json.loads(CASES[0].read_text())["input"]["model"]
    for changes, words in [
        ({"gamma": 1.0}, "model.gamma"),
        ({"transition": [[0.5]]}, "transition"),
        ({"rho": {"kind": "product", "local": [[np.nan]]}}, "model"),
        ({"n": 2.5}, "model"),
        ({"surprise": 1}, "surprise"),
        ({"edges": [[0, 99]]}, "edges"),
    ]:
        with pytest.raises(phalanx.ConfigError, match=words):
            phalanx.exact({**good, **changes})
    with pytest.raises(phalanx.ConfigError, match="model"):
        phalanx.exact(3)
    with pytest.raises(phalanx.ConfigError, match="cannot be read"):
        phalanx.exact("nowhere.json")
    with pytest.raises(phalanx.ConfigError, match="theta"):
        phalanx.exact(good, theta=[[1.0]])
