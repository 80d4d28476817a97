"""Every example of the book's Python pages and the notebook, run in order."""

import re
import runpy
import sys
from pathlib import Path

import phalanx
import pytest
from strangers import Mlflow, Wandb

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted((DOCS / "book/src").glob("python*.md"))
BLOCK = re.compile(r"^```python( short)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Iterations of a run in a block that is marked `short`.
SHORT = 3


def test_the_pages_are_there():
    assert len(PAGES) == 6


def test_the_reference_is_that_of_the_docstrings():
    """`python docs/book/python_api.py` writes it."""
    script = runpy.run_path(str(DOCS / "book/python_api.py"))
    assert script["PAGE"].read_text() == script["page"]()
    assert sorted(name for names in script["PARTS"].values() for name in names) == sorted(phalanx.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_book(page, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    for name, stand_in in (("wandb", Wandb()), ("mlflow", Mlflow())):
        monkeypatch.setitem(sys.modules, name, stand_in)
    text = page.read_text()
    names = {}
    whole = phalanx.train
    for block in BLOCK.finditer(text):

        def short(*given, **settings):
            return whole(*given, **{**settings, "iterations": min(SHORT, settings.get("iterations", SHORT))})

        monkeypatch.setattr(phalanx, "train", short if block[1] else whole)
        # Line numbers in tracebacks are those of the page.
        code = "\n" * text[: block.start(2)].count("\n") + block[2]
        exec(compile(code, str(page), "exec"), names)


def test_the_tour():
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    notebook = nbformat.read(DOCS / "tour.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # It is stored as it was run, for people who look at it on the web.
    assert len(code) >= 8 and [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    pictures = [output for cell in code for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 2
    client.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
