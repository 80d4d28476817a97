"""Your own utilities: the built-in ones made again, gradients that are none, and what autodiff does."""

import numpy as np
import phalanx
import pytest


def entropy(occupancy, gamma):
    share = (1 - gamma) * occupancy.sum(axis=1)
    return -(share * np.log(np.maximum(share, 1e-12))).sum()


def entropy_slopes(occupancy, gamma):
    share = np.maximum((1 - gamma) * occupancy.sum(axis=1), 1e-12)
    return np.repeat(-(1 - gamma) * (np.log(share) + 1)[:, None], occupancy.shape[1], axis=1)


def constrained(kind, out):
    constraint = [{"kind": kind, "at_least": 0.5, "name": "spread"}]
    return phalanx.train("synthetic", iterations=60, constraint=constraint, out=out)


def test_an_own_entropy_trains_as_the_built_in_one():
    """The same formula with the same numbers: equal up to the last digits of sums."""
    ours, theirs = constrained(phalanx.Utility(entropy, entropy_slopes), "a"), constrained("state_entropy", "b")
    assert ours.metrics["objective"] == pytest.approx(theirs.metrics["objective"], rel=1e-6)
    assert ours.agents["value"] == pytest.approx(theirs.agents["value"], rel=1e-6)
    assert ours.config["constraint"][0]["kind"] == "entropy"


def test_runs_with_own_utilities_are_opened_and_resumed_with_them():
    utility = phalanx.Utility(entropy, entropy_slopes)
    run = constrained(utility, "a")
    found = run.evaluate(episodes=40)
    assert phalanx.load("a", utilities=[utility]).evaluate(episodes=40).details == found.details
    with pytest.raises(
        phalanx.ConfigError, match=r"utilities: 'a' has a utility of your own, `entropy`; .*utilities=\[\.\.\.\]"
    ):
        phalanx.load("a")


def test_objectives_by_agent():
    """Every agent its own share of time in state 1."""
    wanted = np.linspace(0.3, 0.7, 10)

    def near(occupancy, gamma, agent):
        return -(((1 - gamma) * occupancy[1].sum() - wanted[agent]) ** 2)

    def slopes(occupancy, gamma, agent):
        off = (1 - gamma) * occupancy[1].sum() - wanted[agent]
        return np.array([[0.0, 0.0], [1.0, 1.0]]) * (-2 * off * (1 - gamma))

    run = phalanx.train("synthetic", iterations=300, objective=phalanx.Utility(near, slopes), constraint=[])
    share = np.array([0.01 * table[1].sum() for table in run.occupancy(episodes=200)])
    assert run.outcome["objective"] > -0.005
    assert np.corrcoef(share, wanted)[0, 1] > 0.9


def test_scale_and_offset_apply():
    utility = phalanx.Utility(entropy, entropy_slopes)
    run = phalanx.train(
        "synthetic", iterations=1, constraint=[{"kind": utility, "scale": 2.0, "offset": 1.0, "at_least": 0.5}]
    )
    assert run.agents["value"][0] == pytest.approx(1 + 2 * 0.69, abs=0.02)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_gradients_by_autodiff(library):
    if library == "jax":
        numpy = pytest.importorskip("jax.numpy")
    else:
        numpy = pytest.importorskip("torch")

    def spread(occupancy, gamma):
        share = (1 - gamma) * occupancy.sum(1)
        return -(share * numpy.log(numpy.clip(share, 1e-12, 1.0))).sum()

    ours = constrained(phalanx.Utility(spread), "a")
    theirs = constrained("state_entropy", "b")
    assert ours.metrics["objective"] == pytest.approx(theirs.metrics["objective"], rel=1e-3)


def fails(value, gradient=None, **settings):
    with pytest.raises(phalanx.ConfigError) as told:
        kind = phalanx.Utility(value, gradient, **settings)
        phalanx.train("synthetic", iterations=1, constraint=[{"kind": kind, "at_least": 0.1}])
    return str(told.value)


def test_wrong_ones_are_named():
    message = fails(entropy, lambda occupancy, gamma: 1.01 * entropy_slopes(occupancy, gamma))
    assert message.startswith("constraint.0.gradient: is not the gradient of value: entry [0, 0] is")
    assert "gradient" in fails(entropy, lambda occupancy: occupancy[0])
    assert "shape [3, 2], not [2, 2]" in fails(entropy, lambda occupancy: np.zeros((3, 2)))
    assert "gradient" in fails(entropy, lambda occupancy: np.full((2, 2), np.nan))
    assert "gradient: gives" in fails(entropy, lambda occupancy: np.full((2, 2), "x"))
    assert "gradient: is missing" in fails(entropy)
    assert "value: gives" in fails(lambda occupancy: occupancy, lambda occupancy: occupancy)
    assert "constraint.0.value: gives NaN" in fails(lambda occupancy: float("nan"), lambda occupancy: occupancy)
    assert "value: gives" in fails(lambda occupancy: "x", lambda occupancy: occupancy)
    assert "value" in fails(lambda: 1.0, lambda occupancy: occupancy)
    assert "value" in fails(lambda occupancy, other: 1.0, lambda occupancy: occupancy)
    assert "value" in fails(3)
    assert "gradient" in fails(entropy, 3)
    assert "range" in fails(entropy, entropy_slopes, range=(2.0, 1.0))
    small = fails(lambda o: 1e5 * o[0, 0] + o[1, 1], lambda o: np.array([[1e5, 0.0], [0.0, -1.0]]))
    assert "entry [1, 1] is -1" in small
    assert "name" in fails(entropy, entropy_slopes, name=1)
    assert "range" in fails(entropy, entropy_slopes, range=1)
    assert "check" in fails(entropy, entropy_slopes, check=3)
    assert "built-in" in fails(entropy, entropy_slopes, name="state_entropy")
    assert "maximum" in fails(entropy, entropy_slopes, range=(0.0, 0.05))


def test_an_exception_in_a_utility_reaches_the_caller():
    calls = [0]

    def sometimes(occupancy):
        calls[0] += 1
        if calls[0] > 200:
            raise ArithmeticError("no more")
        return 0.0

    utility = phalanx.Utility(sometimes, lambda occupancy: np.zeros((2, 2)))
    with pytest.raises(ArithmeticError, match="no more"):
        phalanx.train("synthetic", iterations=1000, constraint=[{"kind": utility, "at_most": 1.0}], out="run")
    # It is as if it had been killed: it can go on.
    calls[0] = -(10**9)
    assert phalanx.resume("run", utilities=[utility]).outcome["iterations"] == 1000


def test_two_utilities_of_one_name():
    first, second = (phalanx.Utility(lambda o, k=k: k * o.sum(), lambda o, k=k: np.full((2, 2), k), name="sum") for k in (1.0, 2.0))  # fmt: skip
    constraint = [
        {"kind": first, "at_most": 1e3},
        {"kind": second, "at_most": 1e3},
        {"kind": first, "at_most": 2e3},
    ]
    run = phalanx.train("synthetic", iterations=1, constraint=constraint)
    assert [entry["kind"] for entry in run.config["constraint"]] == ["sum", "sum-2", "sum"]
    assert set(np.round(run.agents["value"], 6)) == {100.0, 200.0}
