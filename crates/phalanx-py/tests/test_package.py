"""The package as a newcomer meets it: names, versions, reprs, folders, seeds, copies."""

import copy
import importlib.metadata
import inspect
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import phalanx
import pytest
from lines import Line


def share(occupancy):
    return occupancy[1].sum() / 100


def share_slopes(occupancy):
    return np.array([[0.0, 0.0], [0.01, 0.01]])


def interrupt(info):
    raise KeyboardInterrupt


def test_names():
    """Modules are not offered, but can be imported; every public thing has a docstring that can be pasted."""
    assert set(dir(phalanx)) == {*phalanx.__all__, "__doc__", "__version__"}
    modules = [name for name in dir(phalanx) if inspect.ismodule(getattr(phalanx, name))]
    assert modules == []
    from phalanx.envs import VectorEnv

    assert VectorEnv is phalanx.VectorEnv
    for name in phalanx.__all__:
        told = inspect.getdoc(getattr(phalanx, name)) or ""
        assert told or name == "STOP", name
        assert "getfixture" not in told
    assert "getfixture" not in (phalanx.__doc__ or "")


def test_version():
    assert phalanx.__version__.count(".") == 2
    try:
        installed = importlib.metadata.version("phalanx")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed")
    assert phalanx.__version__ == installed


def test_hints_name_packages_that_exist():
    code = """
        import sys
        sys.modules["matplotlib"] = sys.modules["pettingzoo"] = sys.modules["gymnasium"] = None
        import phalanx
        run = phalanx.train("synthetic", iterations=1, temporary=True)
        games = phalanx.vector_env("line")
        for call in (run.plot, lambda: phalanx.env("line"), lambda: games.action_space):
            try:
                call()
            except ImportError as error:
                print(error)
        print(sorted(games.metadata))
        """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    told = subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    for line, name in zip(told, ["matplotlib", "pettingzoo", "gymnasium"], strict=False):
        assert f"pip install {name}" in line and "phalanx[" not in line
    assert told[3] == "['name', 'render_modes']"


def test_reprs():
    run = phalanx.train("synthetic", iterations=3, out="run")
    assert (
        repr(run.metrics).startswith("<Table of 3 rows: iteration, return, objective")
        and len(repr(run.metrics)) < 400
    )
    assert repr(phalanx.STOP) == "phalanx.STOP" and pickle.loads(pickle.dumps(phalanx.STOP)) is phalanx.STOP
    assert repr(run).startswith("<Run 'run': return ")
    found = phalanx.evaluate("synthetic", constraint=[], episodes=8)
    assert repr(found) == "<Assessment of 8 episodes: no constraints>" and found.is_safe
    assert "no constraints" in found._repr_html_()


def test_runs_survive_another_working_directory(monkeypatch, tmp_path):
    run = phalanx.train("synthetic", iterations=2, out="run")
    loaded, pickled = phalanx.load("run"), pickle.dumps(phalanx.load("run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for one in (run, loaded, pickle.loads(pickled)):
        assert len(one.metrics["iteration"]) == 2 and one.policy.neighbours[0] == [0, 1]

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(return_of, (loaded,)) == run.outcome["return"]


def return_of(run):
    return run.outcome["return"]


def test_a_callback_may_change_the_working_directory(monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    run = phalanx.train(
        "synthetic", iterations=3, out="run", callback=lambda info: monkeypatch.chdir(tmp_path / "elsewhere")
    )
    assert run.path == tmp_path / "run" and run.outcome["iterations"] == 3


def test_temporary_runs_go_with_their_object():
    run = phalanx.train("synthetic", iterations=2, temporary=True)
    policy, folder = run.policy, run.path
    assert folder.is_dir() and not os.path.exists("runs")
    # The folder lives as long as a run that goes on with it.
    again = phalanx.resume(run)
    del run
    assert folder.is_dir()
    with pytest.raises(TypeError, match="temporary"):
        pickle.dumps(again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del again
    assert not folder.exists() and policy.probabilities(0, [0, 1]).sum() == pytest.approx(1)
    with pytest.raises(phalanx.Interrupted) as stopped:
        phalanx.train("synthetic", iterations=5, temporary=True, callback=interrupt)
    kept = str(stopped.value).partition('resume("')[2].partition('"')[0]
    assert phalanx.resume(kept).is_finished
    shutil.rmtree(os.path.dirname(kept))
    with pytest.raises(phalanx.ConfigError, match="temporary: .*`out`"):
        phalanx.train("synthetic", temporary=True, out="run")


def test_a_seed_that_nobody_chose_is_told():
    first, second = (phalanx.config("synthetic", seed=None)["seed"] for _ in range(2))
    assert first != second
    run = phalanx.train("synthetic", seed=None, iterations=2, temporary=True)
    again = phalanx.train("synthetic", seed=run.config["seed"], iterations=2, temporary=True)
    assert np.array_equal(run.metrics["objective"], again.metrics["objective"])


def test_worlds_of_ones_own_are_asked_for_by_name():
    """By `load`, `resume`, and the message that says how to go on."""
    world, utility = Line(4), phalanx.Utility(share, share_slopes)
    bound = [{"kind": utility, "at_most": 0.9}]

    go_on = r'phalanx\.resume\("run", world=\.\.\., utilities=\[\.\.\.\]\)'
    with pytest.raises(phalanx.Interrupted, match=go_on):
        phalanx.train("synthetic", world=world, constraint=bound, iterations=3, out="run", callback=interrupt)
    with pytest.raises(
        phalanx.ConfigError, match=r"world: 'run' is of a world of your own, `Line`; .*world=\.\.\."
    ):
        phalanx.resume("run", utilities=[utility])
    with pytest.raises(phalanx.ConfigError, match=r"utilities: 'run' has a utility of your own, `share`"):
        phalanx.resume("run", world=world)
    phalanx.resume("run", world=world, utilities=[utility])
    for call in (phalanx.load, phalanx.Policy.load):
        with pytest.raises(phalanx.ConfigError, match="world: 'run' is of a world of your own"):
            call("run")
        found = call("run", world=world, utilities=[utility])
        assert repr(found).startswith(("<Run 'run'", "<Policy of 4 agents>"))

    class Other(Line):
        pass

    with pytest.raises(phalanx.ConfigError, match="`Line`, not of `Other`"):
        phalanx.load("run", world=Other(4))


def test_policies_are_saved_and_copied(tmp_path):
    for preset in ("synthetic", "pistonball"):
        policy = phalanx.train(preset, iterations=2, temporary=True).policy
        policy.save(tmp_path / preset)
        again = [phalanx.Policy.load(tmp_path / preset), pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)]
        seen = phalanx.vector_env({"synthetic": "line"}.get(preset, preset), 5).reset(seed=1)[0]
        for other in again:
            assert all(np.array_equal(a, b) for a, b in zip(policy.parameters, other.parameters, strict=True))
            assert np.array_equal(other.act(seen, seed=3), policy.act(seen, seed=3))
    with pytest.raises(phalanx.ConfigError, match="path: 'nowhere' is no policy; it has no config.toml"):
        phalanx.Policy.load("nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(phalanx.ConfigError, match="path: "):
        policy.save(tmp_path / "file" / "below")
    own = phalanx.train("synthetic", world=Line(3), iterations=1, temporary=True).policy
    with pytest.raises(TypeError, match=r"use policy\.save\(path\) and phalanx\.Policy\.load"):
        pickle.dumps(own)
    own.save(tmp_path / "own")
    assert phalanx.Policy.load(tmp_path / "own", world=Line(3)).neighbours == own.neighbours


def test_many_probabilities_at_once():
    policy = phalanx.train("synthetic", iterations=20, temporary=True).policy
    rows = np.random.default_rng(1).integers(0, 2, (4, 5, 3))
    laws = policy.probabilities("agent_3", rows)
    assert laws.shape == (4, 5, 2)
    assert np.array_equal(laws[2, 3], policy.probabilities(3, rows[2, 3]))
    assert policy.probabilities(3, np.zeros((0, 3), int)).shape == (0, 2)
    with pytest.raises(phalanx.ConfigError, match="observation: agent 3 sees 3 agents, not 2"):
        policy.probabilities(3, rows[..., :2])


def test_utilities_are_copied():
    utility = phalanx.Utility(share, share_slopes, range=(0.0, 1.0))
    for again in (pickle.loads(pickle.dumps(utility)), copy.deepcopy(utility)):
        bound = [{"kind": again, "at_most": 0.6}]
        run = phalanx.train("synthetic", constraint=bound, iterations=1, temporary=True)
        assert set(run.agents["constraint"]) == {"share"}


def test_steps_that_read_something_else_are_told_so():
    class Random(Line):
        def step(self, states, actions, uniform):
            return np.random.random(self.n) < 0.5

    class Clock(Line):
        time = 0

        def step(self, states, actions, uniform):
            self.time += 1
            return states if self.time % 8 < 4 else actions

    class Paid(Line):
        ranges = {"cost": (0.0, 1.0)}

        def step(self, states, actions, uniform):
            return super().step(states, actions, uniform), np.random.random(self.n)

    class Start(Line):
        def start(self, uniform):
            return np.random.randint(0, 2, self.n)

    for world, name in [(Random(4), "step"), (Clock(4), "step"), (Paid(4), "step"), (Start(6), "start")]:
        with pytest.raises(phalanx.ConfigError, match=f"^{name}: gives different results for the same arguments"):
            phalanx.train("synthetic", world=world, iterations=1)


def test_rewards_of_one_dimension_are_told_so():
    line = Line(4)
    line.rewards = {"reward": np.array([1.0, 2.0, 3.0])}
    with pytest.raises(
        phalanx.ConfigError, match=r"rewards\['reward'\]: shape \(3,\); tables \[states, actions\]"
    ):
        phalanx.train("synthetic", world=line, iterations=1)


def test_graphs_as_matrices_and_dicts():
    ring = np.roll(np.eye(4, dtype=int), 1, axis=1)
    for graph in (ring | ring.T, (ring | ring.T).tolist(), {0: [1, 3], 2: [1, 3]}):
        line = Line(4)
        line.graph = graph
        assert line.built.edges == [(0, 1), (0, 3), (1, 2), (2, 3)]
    for graph, words in [
        (ring, "not symmetric"),
        (3 * (ring | ring.T), "0 and 1"),
        ({0: 1}, "list of neighbours"),
    ]:
        line = Line(4)
        line.graph = graph
        with pytest.raises(phalanx.ConfigError, match=f"graph: .*{words}"):
            line.built.edges


def test_lines_in_logs(capfd, monkeypatch):
    """Nobody looks: a line now and then, with the share done and the time left."""
    from phalanx import progress

    phalanx.train("synthetic", iterations=3, temporary=True)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(progress, "EVERY_LINE", 0.0)
    phalanx.train("synthetic", iterations=3000, temporary=True)
    lines = capfd.readouterr().err.splitlines()
    assert lines and all(line.startswith("phalanx: ") and " %, " in line for line in lines)
    assert any(line.endswith(" s left") for line in lines[1:]) or len(lines) == 1
    phalanx.train("synthetic", iterations=3000, temporary=True, progress=False)
    assert capfd.readouterr().err == ""


def test_progress_counts_what_is_done():
    told = []
    phalanx.train("synthetic", iterations=5, progress=told.append, temporary=True)
    assert told[-1]["done"] == told[-1]["iteration"] == 5
