"""Runs from Python: what they give, how they are stopped, and that they are the command line's, byte for byte."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pandas
import phalanx
import pytest
from conftest import ROOT

#: What a run leaves behind that does not tell of time or of how it was called.
SAME = ["config.toml", "metrics.csv", "agents.csv", "returns.csv", "agents-summary.csv", "policy.safetensors",
        "multipliers.safetensors"]  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        ("synthetic", {"iterations": 30}),
        ("wireless", {"iterations": 3, "world.rows": 3}),
        ("pistonball", {"iterations": 2}),
        ("epidemic", {"iterations": 3}),
        ("paper/wireless", {"iterations": 2}),
    ],
)
def test_the_bytes_are_those_of_the_command_line(command_line, tmp_path, preset, settings):
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    subprocess.run(
        [command_line, "train", preset, *sets, "--seed", "3", "--out", tmp_path / "there", "--json"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    run = phalanx.train(preset, **settings, seed=3, threads=1, out=tmp_path / "here")
    for name in SAME:
        assert (run.path / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name


def test_a_run_tells_everything():
    run = phalanx.train("synthetic", iterations=40, seed=5)
    assert run.path.relative_to(os.getcwd()).as_posix() == "runs/synthetic-seed5"
    assert len(run.metrics["objective"]) == 40
    frame = pandas.DataFrame(run.agents)
    assert list(frame["constraint"].unique()) == ["state_entropy"] and len(frame) == 10
    assert (run.multipliers[0] >= 0).all() and len(run.multipliers) == 10
    assert run.returns["return"].mean() == pytest.approx(run.outcome["return"])
    assert {"p50", "quantity"} <= run.summary.keys()
    assert run.timings["iteration"][-1] == 39
    assert "synthetic-seed5" in repr(run) and "objective" in run._repr_html_()
    assert "40 rows" in run.metrics._repr_html_()
    found = run.evaluate(episodes=100, seed=2)
    again = run.evaluate(episodes=100, seed=2, threads=1)
    assert found.details == again.details and found.details != run.evaluate(episodes=100, seed=3).details
    assert set(found.verdicts) <= {"safe", "unsafe", "undecided"} and len(found.constraints["lower"]) == 10
    assert found.exact is not None and found.exact["objective"] == pytest.approx(run.outcome["exact"]["objective"])
    occupancy = run.occupancy(episodes=20)
    assert occupancy[3].shape == (2, 2) and occupancy[3].sum() == pytest.approx(100, rel=1e-3)
    assert phalanx.load(run.path).evaluate(episodes=100, seed=2).details == found.details


def test_plots_show_the_run(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    run = phalanx.train("synthetic", iterations=60, out=tmp_path / "run")
    figure = run.plot()
    assert [axis.get_title() for axis in figure.axes] == ["objective", "return", "total violation", "constraints"]
    drawn = figure.axes[0].lines[0].get_ydata()
    assert np.array_equal(drawn, run.metrics["objective"])
    figure.savefig(tmp_path / "run.png")
    assert len(run.plot(show_agents=False).axes) == 3


def test_settings_merge_into_sections():
    found = phalanx.config("synthetic", dual={"kind": "proximal"}, constraint=[], **{"world.n": 7})
    base = phalanx.config("synthetic")
    assert found["dual"]["kind"] == "proximal" and found["dual"]["mu_max"] == base["dual"]["mu_max"]
    assert found["constraint"] == [] and found["world"]["n"] == 7
    replaced = phalanx.config("synthetic", world={"kind": "wireless", "rows": 3, "columns": 3})
    assert replaced["world"]["rows"] == 3 and "n" not in replaced["world"]
    arrays = phalanx.config(
        "synthetic", objective={"kind": "linear", "r": np.array([0.0, 1.0, 2.0, 3.0])}, seed=np.int64(4)
    )
    assert arrays["objective"]["r"] == [0.0, 1.0, 2.0, 3.0] and arrays["seed"] == 4
    whole = phalanx.config({"world": {"kind": "line", "n": 4}, "objective": {"kind": "return"}}, world={"n": 5})
    assert whole["world"]["n"] == 5


def test_a_run_can_start_from_another():
    first = phalanx.train("synthetic", iterations=50)
    second = phalanx.train("synthetic", iterations=1, init=first, out="second")
    assert second.metrics["objective"][0] > 1.2 * first.metrics["objective"][0]


def test_progress_is_told_and_may_stop_the_run():
    told = []
    phalanx.train("synthetic", iterations=20, progress=told.append, out="a")
    assert told[-1]["iteration"] == 20 and told[-1]["objective"] > 0

    def enough(now):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        phalanx.train("synthetic", iterations=10**7, progress=enough, out="b")
    assert phalanx.load("a").outcome["iterations"] == 20
    with pytest.raises(phalanx.ConfigError, match="not finished"):
        phalanx.load("b")


def test_other_threads_of_python_go_on(command_line):
    """A second thread counts; if the lock were held it would stand still."""
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.monotonic()
    phalanx.train("synthetic", iterations=4000, threads=1, progress=False)
    seconds = time.monotonic() - begin
    seen = counted[0]
    done.set()
    thread.join()
    assert seconds > 0.2
    assert seen > 0.2 * seconds / 0.001


def interrupted(script, folder, wait=0.0):
    """What a script says after Ctrl-C in a process of its own, as a person would press it: some time after its first line."""
    call = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 0
    return said


def test_ctrl_c_stops_cleanly(tmp_path):
    """The resumed run ends in the bytes of a whole one."""
    script = """
        import phalanx
        try:
            phalanx.train("synthetic", iterations=6000, seed=2, out="run", progress=lambda now: print(now["iteration"], flush=True))
        except phalanx.Interrupted as stopped:
            print("interrupted:", stopped, flush=True)
        """
    last = interrupted(script, tmp_path).splitlines()[-1]
    assert last.startswith("interrupted: stopped after ") and 'phalanx.resume("run")' in last
    resumed = phalanx.resume(tmp_path / "run")
    whole = phalanx.train("synthetic", iterations=6000, seed=2, out=tmp_path / "whole")
    for name in SAME:
        assert (resumed.path / name).read_bytes() == (whole.path / name).read_bytes(), name


def test_the_command_line_comes_with_the_package():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-m", "phalanx"]
    shown = subprocess.run([*call, "presets"], capture_output=True, text=True, env=environment, check=True)
    assert "pistonball" in shown.stdout
    wrong = subprocess.run(
        [*call, "train", "synthetc"], capture_output=True, text=True, env=environment, check=False
    )
    assert wrong.returncode == 2 and "synthetc" in wrong.stderr
    helped = subprocess.run([*call, "--help"], capture_output=True, text=True, env=environment, check=False)
    assert helped.returncode == 0 and "Usage: phalanx" in helped.stdout


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: phalanx.train("synthetc"), "synthetc"),
        (lambda: phalanx.train(), "source"),
        (lambda: phalanx.train(3), "source"),
        (lambda: phalanx.train("synthetic", kapa=3), "kapa"),
        (lambda: phalanx.train("synthetic", kappa="x"), "kappa"),
        (lambda: phalanx.train("synthetic", kappa=-1), "kappa"),
        (lambda: phalanx.train("synthetic", gamma=float("nan")), "gamma"),
        (lambda: phalanx.train("synthetic", seed=2**80), "seed"),
        (lambda: phalanx.train("synthetic", dual={"eta_mu": -1.0}), "dual.eta_mu"),
        (lambda: phalanx.train("synthetic", dual={3: 4}), "dual"),
        (lambda: phalanx.train("synthetic", dual=object()), "dual"),
        (lambda: phalanx.train("synthetic", world=object()), "world"),
        (lambda: phalanx.train("synthetic", objective=3), "objective"),
        (lambda: phalanx.train("synthetic", objective=lambda x: x), "objective"),
        (
            lambda: phalanx.train("synthetic", constraint=[{"kind": "state_entropy", "at_least": 9.0}]),
            "constraint.0",
        ),
        (lambda: phalanx.train("synthetic", threads=0), "threads"),
        (lambda: phalanx.train("synthetic", threads="x"), "threads"),
        (lambda: phalanx.train("synthetic", out=1), "out"),
        (lambda: phalanx.train("synthetic", init=1), "init"),
        (lambda: phalanx.train("synthetic", constraint=None), "constraint"),
        (lambda: phalanx.train("synthetic", kappa={}), "kappa"),
        (lambda: phalanx.train("synthetic", dual=[]), "dual"),
        (lambda: phalanx.train("synthetic", progress="x"), "progress"),
        (lambda: phalanx.train({1: 2}), "source"),
        (lambda: phalanx.train("synthetic", device="gpu"), "device"),
        (lambda: phalanx.train("synthetic", device=0), "device"),
        (lambda: phalanx.train("synthetic", device="cuda", algorithm="exact"), "device"),
        (lambda: phalanx.train("pistonball", device="cuda"), "world.kind"),
        (lambda: phalanx.load(1), "path"),
        (lambda: phalanx.resume(None), "run"),
        (lambda: phalanx.resume("nowhere", device=0), "device"),
        (lambda: phalanx.load(".", utilities=1), "path"),
        (lambda: phalanx.evaluate("synthetic", policy=1), "policy"),
        (lambda: phalanx.evaluate("synthetic", evaluation_seed=-1), "evaluation_seed"),
        (lambda: phalanx.evaluate("synthetic", episodes=1.5), "episodes"),
        (lambda: phalanx.exact({"model": 1}), "model"),
        (lambda: phalanx.train("synthetic", out=__file__), "out"),
        (lambda: phalanx.train("synthetic", init="nowhere"), "nowhere"),
        (lambda: phalanx.load("nowhere"), "path"),
        (lambda: phalanx.resume("nowhere"), "run"),
        (lambda: phalanx.evaluate("synthetic", policy="wave"), "policy"),
        (lambda: phalanx.evaluate("synthetic", confidence=2.0), "confidence"),
        (lambda: phalanx.evaluate("synthetic", episodes=0), "episodes"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises((phalanx.ConfigError, TypeError)) as told:
        call()
    message = str(told.value)
    assert words in message and "\n" not in message
    assert not message.startswith("-")


def test_runs_go_on_with_another_device(tmp_path):
    whole = phalanx.train("synthetic", iterations=8, out=tmp_path / "whole")
    stopped = phalanx.train("synthetic", iterations=8, out=tmp_path / "run", callback=lambda at: phalanx.STOP)
    with pytest.raises(phalanx.ConfigError, match="device: `gpu`"):
        phalanx.resume(stopped, device="gpu")
    resumed = phalanx.resume(stopped, device="auto")  # too small for a GPU
    assert (resumed.path / "metrics.csv").read_bytes() == (whole.path / "metrics.csv").read_bytes()


def test_runs_are_evaluated_on_another_device():
    run = phalanx.train("synthetic", iterations=2, temporary=True)
    assert run.evaluate(20, device="auto").details == run.evaluate(20).details  # too small for a GPU
    for device, words in [("gpu", "device: `gpu`"), (0, "device: 0 is no name")]:
        with pytest.raises(phalanx.ConfigError, match=words):
            run.evaluate(20, device=device)


def test_observations_that_do_not_fit_are_named():
    policy = phalanx.train("synthetic", iterations=1).policy
    assert policy.neighbours[0] == [0, 1]
    for observations, words in [
        ({"agent_0": [0, 1, 1]}, "sees 2 agents"),
        ({"agent_0": [0, 2]}, "state 2"),
        ({"agent_0": [0, -1]}, "state -1"),
        ({"agent_0": [0, 0.5]}, "whole numbers"),
        ({"agent_0": [0, float("nan")]}, "whole numbers"),
        ({"agent_10": [0, 1]}, "agent: 10"),
        ({"nobody": [0, 1]}, "nobody"),
        ({"user_0": [0, 1]}, "user_0"),
        ({0.7: [0, 1]}, "0.7"),
        (np.zeros(3), "shape"),
        (np.zeros((9, 3)), "shape"),
    ]:
        with pytest.raises(phalanx.ConfigError, match=words):
            policy.act(observations)
    with pytest.raises(phalanx.ConfigError, match="agent"):
        policy.probabilities(10, [0, 1])


def test_actions_follow_the_policy():
    """Frequencies of drawn actions are the probabilities, alone and in an array."""
    policy = phalanx.train("synthetic", iterations=100).policy
    law = policy.probabilities("agent_3", [1, 0, 1])
    assert law.sum() == pytest.approx(1.0) and len(policy.parameters[3]) == 16
    table = np.zeros((4000, 10, 3), dtype=int)
    table[:, 3] = [1, 0, 1]
    actions = policy.act(table, seed=1)
    assert actions.shape == (4000, 10)
    assert actions[:, 3].mean() == pytest.approx(law[1], abs=4 * np.sqrt(law[0] * law[1] / 4000) + 1e-9)
    assert np.array_equal(actions, policy.act(table, seed=1))
    assert (policy.act(table[0], greedy=True)[3]) == np.argmax(law)


def test_runs_say_what_is_wrong_with_them(tmp_path):
    run = phalanx.train("synthetic", iterations=1, out=tmp_path / "run")
    for call, words in [
        (lambda: run.occupancy(0), "episodes"),
        (lambda: run.occupancy("x"), "episodes"),
        (lambda: run.evaluate(2), "episodes"),
        (lambda: run.evaluate(confidence="x"), "confidence"),
        (lambda: run.evaluate(threads=-1), "threads"),
        (lambda: run.evaluate(seed=-1), "seed"),
    ]:
        with pytest.raises(phalanx.ConfigError, match=words):
            call()
    assert pickle.loads(pickle.dumps(run)).outcome == run.outcome
    (run.path / "outcome.json").write_text("{")
    with pytest.raises(phalanx.ConfigError, match="outcome.json is damaged"):
        phalanx.load(run.path).outcome


@pytest.mark.parametrize("what", ["evaluate", "occupancy"])
def test_ctrl_c_ends_an_evaluation(tmp_path, what):
    script = f"""
        import phalanx
        run = phalanx.train("wireless", iterations=1, evaluation={{"episodes": 1, "max_agent_steps": 10**15}}, out="run")
        print("ready", flush=True)
        try:
            run.{what}(episodes=10**7)
        except KeyboardInterrupt:
            print("ended", flush=True)
        """
    assert interrupted(script, tmp_path, wait=0.5) == "ended\n"


def test_ctrl_c_in_the_closing_evaluation_stops_the_run(tmp_path):
    script = """
        import phalanx
        try:
            phalanx.train(
                "wireless", iterations=2, evaluation={"episodes": 10**7, "max_agent_steps": 10**15}, out="run",
                progress=lambda now: print("ready", flush=True),
            )
        except phalanx.Interrupted as stopped:
            print(stopped, flush=True)
        """
    said = interrupted(script, tmp_path, wait=0.5)
    assert "stopped after 2 iterations; go on with phalanx.resume" in said
    assert (tmp_path / "run/policy.safetensors").exists() and not (tmp_path / "run/outcome.json").exists()


def test_a_write_error_names_the_last_checkpoint(tmp_path):
    """A folder where a file should be is a disk that takes no more files."""
    run = tmp_path / "run"
    block = lambda now: (run / "policy.safetensors.tmp").mkdir(exist_ok=True)
    with pytest.raises(
        phalanx.TrainingError, match=r"cannot write .*checkpoint.* when that is solved, go on with phalanx\.resume"
    ):
        phalanx.train("synthetic", iterations=3000, out=run, progress=block)


def test_the_interpreter_ends_while_a_thread_trains(tmp_path):
    """In a world in Python, whose threads ask for the interpreter again and again."""
    script = f"""
        import sys, threading, time
        sys.path.insert(0, {str(ROOT / "crates/phalanx-py/tests")!r})
        import phalanx
        from lines import Line
        def work():
            phalanx.train("synthetic", world=Line(5), iterations=10**7, out="run-" + sys.argv[1])
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.4)
        """
    for k in range(6):
        call = [sys.executable, "-c", textwrap.dedent(script), str(k)]
        assert (
            subprocess.run(call, cwd=tmp_path, timeout=60, check=False, stderr=subprocess.DEVNULL).returncode == 0
        )


def test_a_forked_process_goes_on(tmp_path):
    script = """
        import os, sys
        import numpy as np, phalanx
        run = phalanx.train("synthetic", iterations=2, out="run")
        run.evaluate(episodes=10)
        games = phalanx.vector_env("line", copies=8, threads=2)
        games.reset(seed=1)
        actions = np.ones((8, 10), dtype=np.uint8)
        games.step(actions)
        child = os.fork()
        if child == 0:
            games.step(actions)
            phalanx.load("run").policy.act({"agent_0": [0, 1]})
            phalanx.evaluate("synthetic", episodes=5)
            os._exit(7)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=60, check=False)
    assert found.returncode == 7


def test_a_progress_that_raises_once_is_heard(tmp_path):
    def once(now):
        raise LookupError(now["iteration"])

    with pytest.raises(LookupError):
        phalanx.train("synthetic", iterations=1, progress=once, out=tmp_path / "a")
    assert phalanx.load(tmp_path / "a").outcome["iterations"] == 1
    with pytest.raises(LookupError):
        phalanx.train("synthetic", iterations=10**7, progress=once, out=tmp_path / "b")
    assert '"stopped"' in (tmp_path / "b" / "meta.json").read_text()
