"""What tests and examples share."""

import pytest


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path, monkeypatch):
    """Runs without a folder of their own must not land in the repository."""
    monkeypatch.chdir(tmp_path)
