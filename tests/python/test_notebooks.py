"""The notebooks run from their first cell to the last, and are stored with outputs."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NEEDED = {"your_router": "torch"}


SHOW = """
def show(value):
    if value is not None:
        getattr(value, "_repr_html_", lambda: repr(value))()
        getattr(value, "_repr_png_", bytes)()
"""


def shown(source: str) -> str:
    """A cell whose last value is shown, as a notebook does."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.parse(f"show({ast.unparse(last.value)})").body[0]
    return ast.unparse(tree) + "\n\n"


def test_there_are_four():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_outputs_are_stored(file):
    cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 2
    assert file.stat().st_size < 250_000 and "Traceback" not in file.read_text()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_runs(file, tmp_path):
    """As a script, in an empty folder."""
    for module in ("pandas", "matplotlib", NEEDED.get(file.stem, "numpy")):
        pytest.importorskip(module)
    cells = json.loads(file.read_text())["cells"]
    script = SHOW + "".join(shown("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
