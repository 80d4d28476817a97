"""Every example of the book's Python pages and the notebook, run in order; every key in the reference."""

import re
import runpy
import sys
import typing
from pathlib import Path

import phalanx
import pytest
from known_keys import SECTIONS, keys, refused
from phalanx import _phalanx, settings
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


def test_the_page_on_exports(tmp_path, monkeypatch):
    """Its blocks read what its commands write, which `crates/phalanx-cli/tests/book/` runs."""
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    run = phalanx.train("synthetic", iterations=SHORT, out="run")
    phalanx.export(run, to="onnx", out="models", episodes=8)
    phalanx.export(run, to="json", out="policy", episodes=8)
    monkeypatch.syspath_prepend(tmp_path / "policy")
    names = {}
    page = DOCS / "book/src/export.md"
    for block in BLOCK.finditer(page.read_text()):
        exec(compile(block[2], str(page), "exec"), names)
    assert names["laws"] == pytest.approx(run.policy.probabilities(0, [[0, 1], [1, 1]]), abs=1e-12)
    assert names["law"] == pytest.approx(run.policy.probabilities(0, [0, 1]), abs=1e-12)


SPAN = re.compile(r"`([^`]+)`")


def sections():
    """Parts of the reference by the names in their headings."""
    text = (DOCS / "book/src/reference.md").read_text()
    configuration = text.partition("## Configuration\n")[2].partition("\n## ")[0]
    parts = {}
    for part in configuration.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        for name in SPAN.findall(heading) or [heading]:
            parts[name.strip("[]")] = body
    return parts


def cells(line):
    """Those of a line of a table; a bar behind a backslash ends none."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows(section):
    """Rows of its tables as dicts, by the words in the first row."""
    found = []
    for table in re.findall(r"(?:^\|.*\n?)+", section, re.MULTILINE):
        head, _, *lines = map(cells, table.splitlines())
        found += [dict(zip(head, line, strict=True)) for line in lines]
    return found


def documented(section):
    """Names in backticks in the column of keys."""
    return {name for row in rows(section) for name in SPAN.findall(row.get("key") or row.get("keys") or "")}


def documented_by_kind(section):
    """The same for each kind; a row without one belongs to the kind above it."""
    found = {}
    kinds = []
    for row in rows(section):
        kinds = SPAN.findall(row["kind"]) or kinds
        for kind in kinds:
            found.setdefault(kind, set()).update(SPAN.findall(row.get("key") or row.get("keys") or ""))
    return found


def test_every_setting_is_in_the_reference():
    parts = sections()
    assert keys(phalanx.Settings) == documented(parts["Top level"]) | (set(parts) - {"Top level"})


@pytest.mark.parametrize(("section", "kind"), SECTIONS)
def test_every_key_of_a_section_is_in_the_reference(section, kind):
    assert documented(sections()[section]) == keys(kind)


def test_every_key_of_utilities_is_in_the_reference():
    both = sections()["constraint"]
    objective, divider, only = both.partition("Only in `[[constraint]]`")
    assert divider and documented(objective) == keys(settings.UtilitySettings)
    assert documented(only) == keys(settings.ConstraintSettings) - keys(settings.UtilitySettings)


def test_every_key_of_worlds_is_in_the_reference():
    found = documented_by_kind(sections()["world"])
    assert found == {kind: refused(world={"kind": kind, "nothing": 1}) for kind in _phalanx.world_kinds()}
    (town,) = (row["meaning"] for row in rows(sections()["world"]) if row["key"] == "`town`")
    wanted = refused(world={"kind": "junctions", "town": {"nothing": 1}})
    assert set(re.findall(r"(\w+) = ", town)) == wanted == keys(settings.TownSettings)


def test_every_key_of_networks_is_in_the_reference():
    found = documented_by_kind(sections()["network"])
    assert set(found) == set(typing.get_args(typing.get_type_hints(settings.NetworkSettings)["kind"]))
    assert set().union(*found.values()) == keys(settings.NetworkSettings) - {"kind"}


@pytest.mark.parametrize("kind", ["linear", "power", "total"])
def test_every_key_of_schedules_is_in_the_reference(kind):
    (shown,) = (span for span in SPAN.findall(sections()["actor"]) if f'{{ kind = "{kind}"' in span)
    assert set(re.findall(r"(\w+) = ", shown)) == refused(actor={"schedule": {"kind": kind, "nothing": 1}}) | {
        "kind"
    }


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
