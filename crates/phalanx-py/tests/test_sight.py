"""Do models see what an environment shows? What is blind is refused, what nobody chose can see."""

import numpy as np
import phalanx
import pytest
from strangers import Bits, Leaking, Pictures, Turns

SHORT = {"objective": {"kind": "return"}, "gamma": 0.9, "horizon": 20, "batch": 16}


def bits(**changes):
    return phalanx.from_pettingzoo(Bits, [], ranges={"reward": (0.0, 1.0)}, **changes)


def test_models_that_nobody_chose_see_observations():
    """10 of 20 bits are right by chance."""
    run = phalanx.train(world=bits(), **SHORT, iterations=60, temporary=True)
    assert (run.config["policy"]["kind"], run.config["critic"]["kind"]) == ("network", "returns")
    assert run.returns["return"].min() > 19
    assert run.policy.act({"a": [1.0], "b": [0.0]}, greedy=True) == {"a": 1, "b": 0}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy": {"kind": "softmax"}}, "policy.kind: `softmax` sees cells alone"),
        ({"policy": {"kind": "direct"}}, "policy.kind: `direct`"),
        ({"policy": {"kind": "linear"}}, "policy.kind: `linear`"),
        ({"policy.kind": "softmax"}, "policy.kind"),
        ({"critic": {"kind": "td"}}, "critic.kind: `td` sees cells alone"),
        ({"policy": {"kind": "network"}, "critic": {"kind": "linear"}}, "critic.kind: `linear`"),
    ],
)
def test_models_that_see_nothing_are_refused(settings, words):
    world = bits()
    for call in (phalanx.train, phalanx.config):
        with pytest.raises(phalanx.ConfigError) as told:
            call(world=world, **SHORT, **settings)
        assert words in str(told.value) and '{"kind": "network"}' in str(told.value) and "cell=" in str(told.value)


def test_what_a_source_says_counts(tmp_path):
    """A preset, a file and a dict that choose a blind model are refused as keywords are; what they leave open is chosen."""
    world, file = bits(), tmp_path / "file.toml"
    file.write_text('[world]\nkind = "line"\nn = 2\n[objective]\nkind = "return"\n[critic]\nkind = "lstd"\n')
    for source in (file, {**SHORT, "critic": {"kind": "lstd"}}):
        with pytest.raises(phalanx.ConfigError, match="critic.kind: `lstd`"):
            phalanx.config(source, world=world)
    file.write_text('[world]\nkind = "line"\nn = 2\n[objective]\nkind = "return"\n[policy]\nhidden = [7]\n')
    found = phalanx.config(file, world=world)
    assert found["policy"]["kind"] == "network" and found["policy"]["hidden"] == [7]
    assert found["critic"]["kind"] == "returns"


def test_cells_are_something_to_see():
    world = bits(cell=lambda seen: int(seen[0]), cells=2)
    found = phalanx.config(world=world, **SHORT, policy={"kind": "softmax"}, critic={"kind": "td"})
    assert found["policy"]["kind"] == "softmax"
    assert phalanx.config(world=world, **SHORT)["policy"]["kind"] == "network"


def test_a_blind_run_is_not_gone_on_with(tmp_path):
    """Made when the default was blind."""
    run = phalanx.train(world=bits(), **SHORT, iterations=1, out=tmp_path / "run")
    config = run.path / "config.toml"
    config.write_text(config.read_text().replace('kind = "network"', 'kind = "softmax"'))
    with pytest.raises(phalanx.ConfigError, match=r"policy\.kind: `softmax`"):
        phalanx.resume(run.path, world=bits())


def test_other_algorithms_and_scripted_policies():
    assert phalanx.config(world=bits(), algorithm="mappo-l", **SHORT)["policy"]["kind"] == "network"
    found = phalanx.evaluate(bits(), **SHORT, episodes=50)
    assert found["return"]["value"] == pytest.approx(10, abs=2)


def test_environments_that_are_none_are_told_apart():
    with pytest.raises(
        phalanx.ConfigError, match=r"make: .* take turns \(AEC\); use its parallel_env, .*aec_to_parallel"
    ):
        phalanx.from_pettingzoo(Turns, [])
    world = phalanx.from_pettingzoo(Pictures, [])
    with pytest.raises(phalanx.ConfigError, match="observations: 'a' has 403200 numbers; .* 65536: .* scale="):
        phalanx.train(world=world, **SHORT)
    small = phalanx.from_pettingzoo(Pictures, [], scale=lambda numbers: numbers[::4000] / 255)
    assert phalanx.train(world=small, **SHORT, iterations=1, temporary=True).is_finished


def test_what_is_left_over_from_an_episode_is_found_before_training(tmp_path):
    """The check plays one seed, another one, and the first again on one copy."""
    world = phalanx.from_pettingzoo(Leaking, [])
    with pytest.raises(
        phalanx.ConfigError, match="two episodes of one seed differ at .*reuse=False .*check=False"
    ):
        phalanx.train(world=world, **SHORT)
    fresh = phalanx.from_pettingzoo(Leaking, [], reuse=False)
    run = phalanx.train(world=fresh, **SHORT, iterations=2, out=tmp_path / "fresh")
    again = phalanx.train(world=fresh, **SHORT, iterations=2, out=tmp_path / "again")
    assert (run.path / "metrics.csv").read_bytes() == (again.path / "metrics.csv").read_bytes()
    assert phalanx.load(run.path, world=fresh).evaluate(episodes=5).details == run.evaluate(episodes=5).details


def test_a_run_is_opened_by_the_world_it_was_trained_in(tmp_path):
    world = phalanx.from_pettingzoo(Leaking, [], check=False)
    run = phalanx.train(world=world, **SHORT, iterations=2, out=tmp_path / "run")
    # Nothing is checked any more: copies have been used.
    world.check = True
    loaded = phalanx.load(run.path, world=world)
    assert np.array_equal(loaded.policy.parameters[0], run.policy.parameters[0])


def test_fresh_copies_are_closed():
    opened, closed = [], []

    class Closing(Bits):
        def __init__(self):
            opened.append(self)

        def close(self):
            closed.append(self)

    world = phalanx.from_pettingzoo(Closing, [], reuse=False)
    phalanx.train(world=world, **SHORT, iterations=1, evaluation={"episodes": 3}, temporary=True)
    assert len(opened) > 16 + 3 and len(closed) >= len(opened) - 1
