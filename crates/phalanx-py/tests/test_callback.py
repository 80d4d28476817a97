"""A function that is called after every iteration: what it sees, and how it stops a run."""

import threading

import numpy as np
import phalanx
import pytest
from lines import Line
from strangers import Mlflow, Wandb


def test_every_iteration_is_told():
    told, threads = [], set()

    def callback(info):
        told.append((info.iteration, dict(info.metrics)))
        threads.add(threading.get_ident())
        assert info.iterations == 200 and (info.run / "config.toml").is_file()

    run = phalanx.train("synthetic", iterations=200, callback=callback, out="run")
    assert [number for number, _ in told] == run.metrics["iteration"].tolist() == list(range(200))
    assert threads == {threading.get_ident()}
    for number, metrics in told:
        assert set(metrics) <= set(run.metrics)
        assert metrics == {name: run.metrics[name][number] for name in metrics}
    assert {"return", "objective", "violation_total", "agent_steps", "comm_bytes"} <= told[0][1].keys()


def test_results_do_not_depend_on_it():
    with_one = phalanx.train("synthetic", iterations=20, callback=lambda info: info.policy(), out="a")
    without = phalanx.train("synthetic", iterations=20, out="b")
    for name in ("metrics.csv", "policy.safetensors", "agents.csv"):
        assert (with_one.path / name).read_bytes() == (without.path / name).read_bytes()


def test_the_policy_is_that_of_the_moment():
    kept = []

    def callback(info):
        kept.append(info.policy())
        if info.iteration == 2:
            assert info.evaluate(episodes=10).episodes == 10

    run = phalanx.train("synthetic", iterations=4, callback=callback, temporary=True)
    firsts = [policy.parameters[3] for policy in kept]
    assert np.array_equal(firsts[-1], run.policy.parameters[3])
    assert not np.array_equal(firsts[0], firsts[1])


@pytest.mark.parametrize("answer", [phalanx.STOP, False])
def test_a_callback_stops_the_run(answer):
    run = phalanx.train(
        "synthetic", iterations=30, callback=lambda info: answer if info.iteration == 6 else None, out="a"
    )
    assert not run.is_finished and repr(run) == "<Run 'a': stopped after 7 iterations>"
    assert run.metrics["iteration"].tolist() == list(range(7))
    assert run.evaluate(episodes=20).episodes == 20 and run.policy.neighbours[0] == [0, 1]
    with pytest.raises(phalanx.ConfigError, match=r"outcome: 'a' is not finished; phalanx\.resume"):
        run.outcome
    with pytest.raises(phalanx.ConfigError, match="not finished"):
        phalanx.load("a")
    told = []
    resumed = phalanx.resume(run, callback=lambda info: told.append(info.iteration))
    assert told == list(range(7, 30)) and resumed.is_finished
    whole = phalanx.train("synthetic", iterations=30, out="b")
    assert (resumed.path / "policy.safetensors").read_bytes() == (whole.path / "policy.safetensors").read_bytes()


def test_a_stop_after_the_last_iteration_is_none():
    run = phalanx.train(
        "synthetic", iterations=3, callback=lambda info: phalanx.STOP if info.iteration == 2 else 0, temporary=True
    )
    assert run.is_finished and run.outcome["iterations"] == 3


def test_other_answers_mean_nothing():
    answers = [None, True, 0, 0.0, "", [], np.False_]
    run = phalanx.train(
        "synthetic",
        iterations=len(answers) + 1,
        callback=lambda info: (answers + [0])[info.iteration],
        temporary=True,
    )
    assert run.is_finished


@pytest.mark.parametrize("number", [0, 4])
def test_an_exception_leaves_a_checkpoint(number):
    def callback(info):
        if info.iteration == number:
            raise LookupError(f"at {number}")

    with pytest.raises(LookupError, match=f"at {number}"):
        phalanx.train("synthetic", iterations=5, callback=callback, out="run")
    told = []
    run = phalanx.resume("run", callback=lambda info: told.append(info.iteration))
    assert told == list(range(number + 1, 5)) and run.is_finished


def test_an_interrupt_in_it_is_one_of_training():
    def callback(info):
        raise KeyboardInterrupt

    with pytest.raises(
        phalanx.Interrupted, match=r'stopped after 1 iterations; go on with phalanx\.resume\("run"\)'
    ):
        phalanx.train("synthetic", iterations=5, callback=callback, out="run")


def test_the_policy_is_not_to_be_had_later():
    kept = []
    phalanx.train("synthetic", iterations=2, callback=kept.append, temporary=True)
    assert repr(kept[1]).startswith("<Iteration 1 of 2: objective ")
    with pytest.raises(phalanx.ConfigError, match="policy: its iteration is over"):
        kept[0].policy()


def test_worlds_in_python_and_nested_runs():
    """Threads of the run ask for the interpreter; the callback trains and evaluates in between."""

    def callback(info):
        phalanx.train("synthetic", iterations=1, temporary=True)
        return info.evaluate(episodes=4).episodes == 5

    run = phalanx.train("synthetic", world=Line(4), iterations=3, callback=callback, temporary=True)
    assert not run.is_finished and len(run.metrics["iteration"]) == 1


def test_what_is_no_function_is_named():
    for bad in (3, "print", [print], object()):
        with pytest.raises(phalanx.ConfigError, match="callback: "):
            phalanx.train("synthetic", iterations=1, callback=bad)


def test_trackers_are_fed():
    wandb, mlflow = Wandb(), Mlflow()
    tracker = wandb.init(config=phalanx.config("synthetic", iterations=5))
    with mlflow.start_run():

        def callback(info):
            tracker.log(info.metrics, step=info.iteration)
            mlflow.log_metrics(info.metrics, step=info.iteration)

        phalanx.train("synthetic", iterations=5, callback=callback, temporary=True)
    assert [step for step, _ in wandb.logged] == mlflow.logged == list(range(5))
