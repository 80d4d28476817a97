"""What tests and examples share."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path, monkeypatch):
    """Runs without a folder of their own must not land in the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def command_line():
    """The program itself, to compare with."""
    given = os.environ.get("PHALANX_BIN") or shutil.which("phalanx-bin")
    places = [given, ROOT / "target/release/phalanx", ROOT / "target/debug/phalanx"]
    found = next((Path(place) for place in places if place and Path(place).is_file()), None)
    if found is None:
        pytest.skip("the program is not built; cargo build --release does it")
    return found
