"""Exported policies act as ours do: ONNX in onnxruntime, JSON in plain Python."""

import json
import runpy

import numpy as np
import onnxruntime
import phalanx
import pytest

#: Random observations of all agents together.
OBSERVATIONS = 10_000
#: Every kind of policy: what it is trained on, and by how much probabilities may differ.
KINDS = {
    "softmax": ("synthetic", {"policy": {"init_std": 1.0}}, 1e-12),
    "direct": ("synthetic", {"policy": {"kind": "direct", "init_std": 1.0}}, 1e-12),
    "own": ("epidemic", {"policy": {"kind": "linear", "features": "own", "init_std": 1.0}}, 1e-12),
    "additive": ("epidemic-grid", {"policy": {"kind": "linear", "features": "additive"}}, 1e-12),
    "pair": ("wireless", {"policy": {"kind": "linear", "init_std": 1.0}}, 1e-12),
    "symbols": ("synthetic", {"policy": {"kind": "network", "output_gain": 1.0}}, 1e-6),
    "numbers": ("platoon-slowdown", {"policy": {"kind": "network", "output_gain": 1.0}}, 1e-6),
    "frames": ("pistonball", {"policy": {"kind": "network", "output_gain": 1.0}}, 1e-6),
    "places": ("wireless-shared", {"world": {"rows": 4, "columns": 5}, "policy": {"output_gain": 1.0}}, 1e-6),
    "site": ("epidemic-shared", {"policy": {"output_gain": 1.0}}, 1e-6),
    "one row": ("platoon-shared", {"world": {"n": 4}, "policy": {"output_gain": 1.0}}, 1e-6),
}


@pytest.fixture(scope="module", params=KINDS)
def case(request, tmp_path_factory):
    """A trained run, random observations of every agent with their laws, and the tolerance."""
    preset, settings, tolerance = KINDS[request.param]
    place = tmp_path_factory.mktemp(request.param)
    run = phalanx.train(preset, iterations=2, out=place / "run", **settings)
    phalanx.export(run, to="json", out=place / "json", episodes=8)
    phalanx.export(run, to="onnx", out=place / "onnx", episodes=8)
    policies = json.loads((place / "json" / "policy.json").read_text())
    rng = np.random.default_rng(5)
    count = -(-OBSERVATIONS // len(policies["agents"]))
    seen, laws = [], []
    for agent in policies["agents"]:
        if agent["rule"]["kind"] == "numbers" and agent["rule"].get("site"):
            states = np.stack([rng.integers(0, size, count) for size in agent["states"]], axis=1)
            laws.append(run.policy.probabilities(agent["agent"], states))
            seen.append(outlook(agent["members"].index(agent["agent"]), states))
            continue
        if agent["rule"]["kind"] == "numbers":
            network = policies["networks"][agent["rule"]["network"]]
            width = network["rows"] * len(network["row_layer"]["weights"])
            seen.append(rng.normal(size=(count, width)).astype(np.float32))
        else:
            seen.append(np.stack([rng.integers(0, size, count) for size in agent["states"]], axis=1))
        laws.append(run.policy.probabilities(agent["agent"], seen[-1]))
    return place, seen, laws, tolerance


def outlook(own, states):
    """What an epidemic's view shows of contacts and the agent at place `own` among them: its state, how many of the others are
    infected (three or more are one), and their share."""
    infected = states.sum(axis=1) - states[:, own]
    level = np.minimum(infected, 3)
    share = infected / max(1, states.shape[1] - 1)
    return np.column_stack([np.eye(2)[states[:, own]], np.eye(4)[level], share]).astype(np.float32)


def test_onnx_in_onnxruntime(case):
    place, seen, laws, tolerance = case
    act = runpy.run_path(str(place / "json" / "act.py"))
    for agent, (rows, law) in enumerate(zip(seen, laws, strict=True)):
        rule = act["POLICIES"]["agents"][agent]["rule"]
        shared = place / "onnx" / f"network-{rule.get('network')}.onnx"
        model = shared if shared.exists() else place / "onnx" / f"agent-{agent}.onnx"
        if rule["kind"] == "places":
            network = act["POLICIES"]["networks"][rule["network"]]
            sums = [act["pooled"](rule, network, row) for row in rows.tolist()]
            rows = np.array(sums, dtype=np.float32)
        elif rule.get("site"):
            rows = np.hstack([rows, np.tile(np.float32(rule["site"]), (len(rows), 1))])
        session = onnxruntime.InferenceSession(model)
        (given,), (got,) = session.get_inputs(), session.get_outputs()
        assert given.name == ("numbers" if rows.dtype == np.float32 else "states")
        assert (given.shape, got.name, got.shape) == (
            ["batch", rows.shape[1]],
            "probabilities",
            ["batch", law.shape[1]],
        )
        found = session.run(["probabilities"], {given.name: rows})[0]
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, law, rtol=0, atol=tolerance)
        # Any number of observations at a time.
        alone = session.run(None, {given.name: rows[:1]})[0]
        np.testing.assert_allclose(alone, law[:1], rtol=0, atol=tolerance)


def test_json_in_plain_python(case):
    place, seen, laws, tolerance = case
    probabilities = runpy.run_path(str(place / "json" / "act.py"))["probabilities"]
    for agent, (rows, law) in enumerate(zip(seen, laws, strict=True)):
        found = [probabilities(agent, row) for row in rows.tolist()]
        np.testing.assert_allclose(found, law, rtol=0, atol=tolerance)


def test_a_card_says_what_it_is_worth(tmp_path):
    run = phalanx.train("synthetic", iterations=3, out=tmp_path / "run")
    made = phalanx.export(run.path, to="c", out=tmp_path / "c", episodes=50, confidence=0.95)
    assert made["files"] == ["policy.h", "policy.c", "card.json", "card.md"]
    card = json.loads((tmp_path / "c" / "card.json").read_text())
    assert card == made["card"]
    assert (card["agents"], card["links"], card["kappa"], card["seed"]) == (10, 9, 1, 1)
    assert sum(card["verdicts"].values()) == 10
    told = run.evaluate(50, confidence=0.95)
    assert card["verdicts"]["safe"] == told.verdicts.count("safe")
    assert card["assessment"]["objective"] == told["objective"]


def test_what_is_refused(tmp_path):
    run = phalanx.train("synthetic", iterations=1, out=tmp_path / "run")
    with pytest.raises(phalanx.ConfigError, match="to: `tflite` is unknown; allowed are onnx, json, c"):
        phalanx.export(run, to="tflite", out=tmp_path / "a")
    with pytest.raises(phalanx.ConfigError, match="out: .* is not empty"):
        phalanx.export(run, to="json", out=run.path)
    phalanx.export(run, to="json", out=tmp_path / "b", episodes=3)
    with pytest.raises(phalanx.ConfigError, match="belongs to `phalanx export --to json`"):
        phalanx.export(run, to="c", out=tmp_path / "b")
