"""Do the fuzz targets in Python survive what is kept of them, and some thousand random inputs? `cargo xtask fuzz` looks for
worse, led by coverage."""

import importlib
import pathlib
import random
import warnings

import pytest

FUZZ = pathlib.Path(__file__).parents[3] / "fuzz"
#: Bytes of a random input.
LENGTH = 96


@pytest.mark.parametrize(("name", "count"), [("environment", 5000), ("keywords", 3000)])
def test_targets_survive(name, count, monkeypatch):
    monkeypatch.syspath_prepend(FUZZ / "python")
    run = importlib.import_module(name).run
    kept = (FUZZ / "corpus" / f"{name}.txt").read_text().split()
    drawn = random.Random(1)
    inputs = [*map(bytes.fromhex, kept), *(drawn.randbytes(LENGTH) for _ in range(count))]
    with warnings.catch_warnings():
        # What is too large for single precision, and what is masked, is refused; NumPy warns before.
        warnings.simplefilter("ignore")
        reached = [run(given) for given in inputs]
    assert sum(level > 0 for level in reached) > 0.3 * len(reached) and reached.count(2) > 0.05 * len(reached)
