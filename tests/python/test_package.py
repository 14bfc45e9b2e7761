"""The package as it is installed: import, stubs, types, symbols."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import moelab

SOURCE = Path(__file__).resolve().parents[2] / "python" / "moelab"


def python(code: str, *options: str) -> str:
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_quick_and_brings_nothing_but_numpy():
    shown = python(
        "import numpy, sys, time; start = time.process_time(); import moelab;"
        "print(time.process_time() - start);"
        "print([name for name in ('pandas', 'matplotlib', 'sklearn', 'scipy', 'torch') if name in sys.modules])"
    ).splitlines()
    assert float(shown[0]) < 0.3  # of the processor, whatever else runs
    assert shown[1] == "[]"


def test_the_version_is_the_programs(moelab_program):
    assert moelab.__version__ in moelab_program.text("--version")


def test_all_names_are_there():
    for name in moelab.__all__:
        if name.startswith("MoE"):
            pytest.importorskip("sklearn", minversion="1.6")
        assert getattr(moelab, name).__doc__
    with pytest.raises(AttributeError):
        _ = moelab.nothing_such


def test_the_stub_is_the_extensions(tmp_path):
    pytest.importorskip("nanobind")
    stub = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-m", "moelab._core", "-o", str(stub)], check=True)
    assert (SOURCE / "_core.pyi").read_text() == stub.read_text()


def test_types_are_right(tmp_path):
    pytest.importorskip("mypy")
    root = SOURCE.parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", root / "pyproject.toml", "--cache-dir", tmp_path, SOURCE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_nothing_of_the_core_is_seen_from_outside():
    done = subprocess.run(["nm", "-D", "--defined-only", moelab._core.__file__], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("nm is not there")
    names = [line.split()[-1] for line in done.stdout.splitlines()]
    assert "PyInit__core" in names
    assert not [name for name in names if "moelab" in name or "nlohmann" in name]


@pytest.mark.parametrize("order", ["import torch, moelab", "import moelab, torch"])
def test_it_lives_beside_pytorch(order):
    pytest.importorskip("torch")
    shown = python(
        f"{order}\nimport numpy as np\n"
        "p = torch.softmax(torch.randn(100, 4, requires_grad=True), -1)\n"
        "print(len(moelab.analyze(p)['metrics']) > 3, float(torch.linalg.svd(torch.eye(3))[1].sum()))\n"
    )
    assert shown.split() == ["True", "3.0"]


def test_the_type_of_a_scenario_is_that_of_the_schema():
    subprocess.run([sys.executable, SOURCE.parent / "scenario_types", "--check"], check=True)


def test_wrong_calls_are_type_errors(tmp_path):
    pytest.importorskip("mypy")
    file = tmp_path / "calls.py"
    file.write_text(
        "import moelab\n"
        "fine: moelab.Scenario = {'name': 'a', 'data': {}, 'model': {}, 'train': {}, 'save': ['weights']}\n"
        "moelab.run(fine, overrides={'model.experts': 3})\n"
        "moelab.run(3)\n"
        "wrong: moelab.Scenario = {'name': 3}\n"
        "moelab.read('a').judge('mine', 3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path, file],
        capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": str(SOURCE.parent)},
    )
    assert [line.split(":")[1] for line in done.stdout.splitlines() if "calls.py" in line and ": error: " in line] == ["4", "5", "6"], done.stdout


def test_the_conda_recipe_has_the_version_of_the_package():
    """Rendered with conda-build's functions replaced, because conda-build is not on the package index."""
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    folder = SOURCE.parents[1] / "packages" / "conda"

    def load_file_regex(load_file, regex_pattern, from_recipe_dir):
        assert from_recipe_dir
        return re.search(regex_pattern, (folder / load_file).read_text())

    text = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string((folder / "meta.yaml").read_text()).render(
        load_file_regex=load_file_regex, compiler="compiler {}".format, stdlib="stdlib {}".format, PYTHON="python"
    )
    recipe = yaml.safe_load(text)
    assert recipe["package"] == {"name": "moelab", "version": moelab.__version__}
    assert (folder / recipe["source"]["path"] / "CMakeLists.txt").exists()
    metadata = (SOURCE.parents[1] / "pyproject.toml").read_text()
    needs = recipe["requirements"]["run"] + recipe["requirements"]["run_constrained"]
    for need in needs[1:]:  # the first is python
        assert f'"{need.replace(" ", "").replace("-base", "")}"' in metadata, need
