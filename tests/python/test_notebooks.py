"""The notebooks run from their first cell to the last, and show what is stored in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDED = {"your_router": "torch"}

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


def cells(file: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]


def texts(cell: dict[str, Any]) -> list[str]:
    """What a cell prints and the plain text of its value, without ids, times and the spaces that align columns."""
    found = ["".join(part.get("text") or part["data"]["text/plain"]) for part in cell["outputs"]]
    return [re.sub(r"\s+|-{2,}", " ", re.sub(r"\b[0-9a-f]{12,}\b|0x[0-9a-f]+|[\d.]+ ?(s|ms|min)\b", "", text)) for text in found]


def test_there_are_four():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_outputs_are_stored(file):
    assert [cell["execution_count"] for cell in cells(file)] == list(range(1, len(cells(file)) + 1))
    assert sum(bool(cell["outputs"]) for cell in cells(file)) >= len(cells(file)) - 2
    assert file.stat().st_size < 250_000 and "Traceback" not in file.read_text()
    assert "/tmp/" not in file.read_text()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_shows_what_is_stored(file, tmp_path):
    """Numbers may differ in their last digits, since another processor rounds otherwise."""
    for module in ("pandas", "matplotlib", NEEDED.get(file.stem, "numpy")):
        pytest.importorskip(module)
    copy = tmp_path / file.name
    shutil.copy(file, copy)
    done = subprocess.run(
        [sys.executable, FOLDER / "execute", copy], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for stored, found in zip(cells(file), cells(copy), strict=True):
        for before, after in zip(texts(stored), texts(found), strict=True):
            assert NUMBER.sub("#", after) == NUMBER.sub("#", before)
            numbers = [float(number.replace("−", "-")) for number in NUMBER.findall(before)]
            again = [float(number.replace("−", "-")) for number in NUMBER.findall(after)]
            assert again == pytest.approx(numbers, rel=0.05, abs=0.02)
