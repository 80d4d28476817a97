"""Types of settings: in step with what the library knows, and found wrong by type checkers."""

import subprocess
import sys
import textwrap
import typing

import phalanx
import pytest
from known_keys import SECTIONS, keys, known, refused
from phalanx import _phalanx, settings


def test_top_level():
    assert keys(phalanx.Settings) == refused(nothing=1)
    assert keys(settings.EvaluatedSettings) == keys(phalanx.Settings) - {"policy"}


@pytest.mark.parametrize(("section", "kind"), SECTIONS)
def test_sections(section, kind):
    assert keys(kind) == refused(**{section: {"nothing": 1}})


def test_networks():
    assert keys(settings.NetworkSettings) == refused(network={"kind": "ring", "nothing": 1})
    with pytest.raises(phalanx.ConfigError) as error:
        phalanx.config("synthetic", network={"kind": "nothing"})
    names = str(error.value).partition("allowed are ")[2].split(", ")
    assert set(typing.get_args(typing.get_type_hints(settings.NetworkSettings)["kind"])) == set(names)


def test_worlds():
    found = {"kind"}
    for kind in _phalanx.world_kinds():
        found |= refused(world={"kind": kind, "nothing": 1})
    assert keys(settings.WorldSettings) == found


def test_utilities():
    """Messages name what files may hold; a file and a channel are read apart."""
    found = refused(objective={"kind": "state_entropy", "nothing": 1})
    assert keys(settings.UtilitySettings) == found | {"channel", "file", "shadow_scale", "shadow_shift"}
    episodes = [
        {"kind": "ever", "states": [1], "at_most": 0.9},
        {"kind": "chance", "channel": "reward", "budget": 5.0, "at_least": 0.5},
        {"kind": "cvar", "channel": "reward", "level": 0.9, "at_most": 20.0},
    ]
    for one in episodes:
        phalanx.config("synthetic", constraint=[one])
    with pytest.raises(phalanx.ConfigError, match="no named events"):
        phalanx.config("synthetic", constraint=[{"kind": "ever", "event": "x", "at_most": 0.9}])
    apart = {"states", "event", "budget", "level"}
    for extra in keys(settings.ConstraintSettings) - keys(settings.UtilitySettings) - apart:
        value = {
            "at_least": 0.1,
            "at_most": 0.6,
            "name": "x",
            "agents": [0],
            "group": [0, 1],
            "margin": 0.01,
            "allow_infeasible": True,
        }
        bound = {} if extra.startswith("at_") else {"at_least": 0.1}
        one = {"kind": "state_entropy", extra: value[extra], **bound}
        phalanx.config("synthetic", constraint=[one])


@pytest.mark.parametrize(
    ("section", "kind"),
    [("policy", settings.PolicySettings), ("critic", settings.CriticSettings), ("dual", settings.DualSettings)],
)
def test_kinds(section, kind):
    with pytest.raises(phalanx.ConfigError, match="unknown variant") as error:
        phalanx.config("synthetic", **{section: {"kind": "nothing"}})
    assert set(typing.get_args(typing.get_type_hints(kind)["kind"])) == known(error)


USE = """
    import numpy as np
    import phalanx

    run = phalanx.train(
        "wireless", kappa=1, seed=None, dual={"kind": "proximal"}, temporary=True,
        constraint=[{"kind": "state_entropy", "at_least": 0.5}], callback=lambda info: info.metrics["return"],
    )
    env = phalanx.env("line", observations="box")
    observations, infos = env.reset(seed=1)
    observations, *rest = env.step(run.policy.act(observations))
    actions = run.policy.act(np.zeros((4, 10, 3)))
    print(actions.shape, run.policy.probabilities(0, [0, 1]).shape)
    put_together: dict[str, float] = {"eta_mu": 1.0}
    phalanx.train("synthetic", dual=put_together, critic={"kind": "returns", "lambda": 0.9})
    phalanx.evaluate("synthetic", policy=lambda seen: {agent: 0 for agent in seen}, horizon=3)

    def stop(info: phalanx.Iteration) -> object:
        return phalanx.STOP if info.policy().neighbours else None

    phalanx.resume(run, callback=stop)
    """
WRONG = """
    import phalanx
    phalanx.train("synthetic", iteratons=3)
    phalanx.config("synthetic", kappa="two")
    phalanx.train("synthetic", algorithm="primal")
    phalanx.env("line", observations="boxes")
    """


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says of a text, by line."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typed")

    def check(text):
        (folder / "use.py").write_text(textwrap.dedent(text))
        call = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "use.py"]
        told = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
        assert not told.stderr, told.stderr
        return [line for line in told.stdout.splitlines() if ": error:" in line]

    return check


def test_documented_calls_pass_a_type_checker(checked):
    assert checked(USE) == []


def test_mistakes_are_found_by_a_type_checker(checked):
    told = checked(WRONG)
    assert [int(line.split(":")[1]) for line in told] == [3, 4, 5, 6]
    assert "iteratons" in told[0]
