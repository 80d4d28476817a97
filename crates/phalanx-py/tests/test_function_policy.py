"""Any function as a policy: evaluated as the library's own are."""

import numpy as np
import phalanx
import pytest
from lines import Line
from strangers import Bits, Discrete

SHORT = {"objective": {"kind": "return"}, "gamma": 0.9, "horizon": 20}


def same(one, other):
    return one.details == other.details


@pytest.mark.parametrize(
    ("source", "world"), [("synthetic", {}), ("wireless", {"rows": 3, "columns": 3}), ("epidemic", {})]
)
def test_a_uniform_function_is_the_uniform_policy(source, world):
    """The same draws make the same actions of the same probabilities: every number is the same."""
    counts = phalanx.vector_env({"synthetic": "line"}.get(source, source), 1, **world).action_counts
    settings = {"gamma": 0.9, "world": world} if world else {"gamma": 0.9}

    def by_agent(seen):
        return {agent: np.full(n, 1 / n) for agent, n in zip(seen, counts, strict=True)}

    def batched(seen):
        return np.stack([np.eye(max(counts))[:n].mean(axis=0) for n in counts])[None].repeat(len(seen), axis=0)

    expected = phalanx.evaluate(source, episodes=8, **settings)
    for function, is_batched in [(by_agent, False), (batched, True)]:
        found = phalanx.evaluate(source, policy=function, batched=is_batched, episodes=8, **settings)
        assert {**found.details, "exact": None} == {**expected.details, "exact": None}


def test_a_trained_policy_is_evaluated_as_in_its_run():
    """By its probabilities, and written out as a function of what agents see."""
    run = phalanx.train("synthetic", iterations=40, temporary=True)
    expected = run.evaluate(episodes=60, seed=5)
    found = phalanx.evaluate("synthetic", policy=run.policy, episodes=60, evaluation_seed=5)
    assert found.verdicts == expected.verdicts and found["objective"] == expected["objective"]
    assert same(run.evaluate(episodes=20, evaluation_seed=9), run.evaluate(episodes=20, seed=9))


def test_a_policy_of_another_world_is_refused():
    policy = phalanx.train("synthetic", iterations=1, temporary=True).policy
    for settings in ({"world": {"n": 7}}, {"kappa": 2}):
        with pytest.raises(phalanx.ConfigError, match="policy: .* other neighbours .*kappa"):
            phalanx.evaluate("synthetic", policy=policy, episodes=8, **settings)


def test_views_are_those_of_environments():
    """A rule on what pistons see gives in an evaluation the steps that it gives in the environment."""
    pytest.importorskip("pettingzoo")
    seen_first = {}

    def still(seen):
        seen_first.update(seen) if not seen_first else None
        return dict.fromkeys(seen, 1)

    found = phalanx.evaluate("pistonball", policy=still, episodes=8)
    assert same(found, phalanx.evaluate("pistonball", policy="still", episodes=8))
    env = phalanx.env("pistonball")
    observations, _ = env.reset(seed=1)
    assert {name: (row.shape, row.dtype) for name, row in seen_first.items()} == {
        name: (row.shape, row.dtype) for name, row in observations.items()
    }


def test_what_is_seen_is_the_neighbourhood():
    widths, states = {}, []

    def function(seen):
        widths.update({agent: len(row) for agent, row in seen.items()})
        states.append([row.max() for row in seen.values()])
        return dict.fromkeys(seen, 1)

    phalanx.evaluate("synthetic", policy=function, episodes=8, kappa=2)
    assert list(widths.values()) == [3, 4, 5, 5, 5, 5, 5, 5, 4, 3]
    assert np.max(states) == 1


def test_worlds_of_ones_own():
    def all_on(seen):
        return dict.fromkeys(seen, 1)

    theirs = phalanx.evaluate("synthetic", world={"n": 5}, policy=all_on, episodes=20)
    ours = phalanx.evaluate("synthetic", world=Line(5), policy=all_on, episodes=20)
    assert ours["objective"] == theirs["objective"]
    assert (
        phalanx.evaluate(Line(5), objective={"kind": "return"}, policy=all_on, episodes=8)["return"]["value"] > 0
    )


def test_environments_of_others():
    """The function is shown what the environment shows, and gives its actions."""
    told = []

    def right(seen):
        told.append(seen)
        return {agent: int(bit[0]) for agent, bit in seen.items()}

    world = phalanx.from_pettingzoo(Bits, [], ranges={"reward": (0.0, 1.0)})
    found = phalanx.evaluate(world, **SHORT, policy=right, episodes=10)
    assert found["return"]["value"] == 20 and list(told[0]) == ["a", "b"]
    assert told[0]["a"].dtype == np.float32 and repr(found) == "<Assessment of 10 episodes: no constraints>"

    class Dials(Bits):
        def action_space(self, agent):
            return None

        def _seen(self):
            super()._seen()
            return {
                agent: {"bit": np.array([[bit]], np.int8), "both": (bit, 0.5)} for agent, bit in self.bits.items()
            }

        def step(self, actions):
            return super().step({agent: int(action[0] > 0) for agent, action in actions.items()})

    def dial(seen):
        assert seen["a"]["bit"].shape == (1, 1) and seen["a"]["both"] == (seen["a"]["bit"].item(), 0.5)
        return {agent: np.array([1.0 if seen[agent]["bit"].item() else -1.0]) for agent in seen}

    world = phalanx.from_pettingzoo(Dials, [], actions=[np.array([-1.0]), np.array([1.0])])
    assert phalanx.evaluate(world, **SHORT, policy=dial, episodes=10)["return"]["value"] == 20
    with pytest.raises(phalanx.ConfigError, match="batched: "):
        phalanx.evaluate(world, **SHORT, policy=dial, batched=True)


def test_a_trained_policy_in_an_environment():
    world = phalanx.from_pettingzoo(Bits, [], ranges={"reward": (0.0, 1.0)})
    run = phalanx.train(world=world, **SHORT, iterations=3, temporary=True)
    found = phalanx.evaluate(world, **SHORT, policy=run.policy, episodes=20)
    assert found["return"] == run.evaluate(episodes=20)["return"]


def test_scaled_observations_are_shown_as_numbers():
    world = phalanx.from_pettingzoo(Bits, [], scale=lambda numbers: 10 * numbers)
    seen = []
    phalanx.evaluate(world, **SHORT, policy=lambda o: seen.append(o["a"]) or dict.fromkeys(o, 0), episodes=8)
    assert {float(one) for row in seen for one in row} == {0.0, 10.0}


def test_unlike_action_counts():
    class Unlike(Bits):
        def action_space(self, agent):
            return Discrete(2 if agent == "a" else 3)

    def mixed(seen):
        return {"a": np.array([0.5, 0.5], np.float32), "b": np.int64(2)}

    world = phalanx.from_pettingzoo(Unlike, [])
    found = phalanx.evaluate(world, **SHORT, policy=mixed, episodes=20)
    assert 3 < found["return"]["value"] < 7


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "`NoneType`"),
        ([0] * 10, "`list`"),
        ({}, "no action of 'agent_0'"),
        (0.5, "'agent_0' 0.5"),
        ("x", "'agent_0' 'x'"),
        (2, "the action 2; allowed are 0 to 1"),
        (-1, "the action -1"),
        ([0, 1], r"\[0, 1\]"),
        ([0.5, 0.5, 0.0], r"\(3,\) probabilities"),
        ([0.5, 0.6], "no probabilities"),
        ([1.5, -0.5], "no probabilities"),
        ([np.nan, 1.0], "no probabilities"),
        (2**70, "'agent_0' the action 11805"),
        (object(), "needed"),
    ],
)
def test_answers_that_do_not_fit_are_named(answer, words):
    is_whole = answer is None or isinstance(answer, dict) or answer == [0] * 10
    function = (lambda seen: answer) if is_whole else (lambda seen: dict.fromkeys(seen, answer))
    with pytest.raises(phalanx.ConfigError, match="^policy: .*" + words):
        phalanx.evaluate("synthetic", policy=function, episodes=8)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        0,
        np.zeros((2, 2)),
        np.full((16, 10, 2), 0.6),
        np.full((16, 10, 2), np.nan),
        np.full((16, 10), 2),
        "x",
    ],
)
def test_arrays_that_do_not_fit_are_named(answer):
    with pytest.raises(phalanx.ConfigError, match="^policy: "):
        phalanx.evaluate("synthetic", policy=lambda seen: answer, batched=True, episodes=16)


def test_an_exception_reaches_the_caller():
    def fails(seen):
        raise ZeroDivisionError("in a policy")

    with pytest.raises(ZeroDivisionError, match="in a policy"):
        phalanx.evaluate("synthetic", policy=fails, episodes=8)
