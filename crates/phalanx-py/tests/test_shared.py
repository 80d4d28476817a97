"""Do policies that agents share act on other graphs?"""

import phalanx
import pytest


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    return phalanx.train(
        "wireless-shared",
        iterations=2,
        batch=2,
        world={"rows": 4, "columns": 4},
        evaluation={"episodes": 2},
        out=folder / "run",
    )


def test_a_policy_is_judged_on_another_grid(run):
    here, there = run.evaluate(20), run.evaluate(20, world={"rows": 6, "columns": 5})
    assert (len(here.verdicts), len(there.verdicts)) == (16, 30)
    assert len(there["returns"]) == 30


def test_training_goes_on_there(run):
    further = phalanx.train(
        "wireless-shared",
        iterations=1,
        batch=2,
        world={"rows": 5, "columns": 6},
        evaluation={"episodes": 2},
        init=run,
        temporary=True,
    )
    assert len(further.evaluate(8).verdicts) == 30


def test_policies_per_agent_stay_where_they_are():
    alone = phalanx.train("synthetic", iterations=1, temporary=True)
    with pytest.raises(phalanx.ConfigError, match="changes the graph"):
        alone.evaluate(8, world={"n": 20})
    with pytest.raises(phalanx.ConfigError, match="network: `str` is no dict"):
        alone.evaluate(8, network="ring")
