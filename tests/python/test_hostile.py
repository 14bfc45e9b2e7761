"""Bad input from Python: one UserError each, at the argument or the path."""

from __future__ import annotations

import math
import os
import time

import numpy as np
import pytest
from fuzz import fuzz

import moelab

PROBS = np.full((4, 2), 0.5)


def hostile_arrays() -> dict[str, object]:
    return {
        "no array": 3,
        "text": "probs",
        "objects": np.array([[1, 2], [3, None]], dtype=object),
        "ragged lists": [[1, 2], [3]],
        "complex": np.ones((4, 2), complex),
        "texts": np.array([["a", "b"]]),
        "dates": np.zeros((4, 2), "datetime64[s]"),
        "records": np.zeros(4, dtype=[("a", float)]),
        "long doubles": np.ones((4, 2), np.longdouble),
        "unsigned of 64 bits": np.ones((4, 2), np.uint64),
        "a number": np.float64(1),
        "no dimension": np.array(1.0),
        "one dimension": np.ones(4),
        "four dimensions": np.ones((1, 1, 1, 1)),
        "no rows": np.ones((0, 2)),
        "no columns": np.ones((4, 0)),
        "NaN": np.full((4, 2), math.nan),
        "infinite": np.full((4, 2), math.inf),
        "negative": np.array([[2.0, -1.0]]),
        "no distribution": np.ones((4, 2)),
        "masked": np.ma.masked_less(PROBS, 1),
        "none at all": None,
    }


@pytest.mark.parametrize("name", hostile_arrays())
def test_arrays_that_are_refused(name):
    with pytest.raises(moelab.UserError) as caught:
        moelab.analyze(hostile_arrays()[name])
    assert caught.value.path == "probs"


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"labels": np.zeros(3, int)}, "labels"),
        ({"labels": np.zeros(4)}, "labels"),
        ({"labels": np.full(4, -1)}, "labels"),
        ({"inputs": np.zeros((3, 2))}, "inputs"),
        ({"inputs": np.full((4, 2), math.nan)}, "inputs"),
        ({"router": np.zeros((3, 2))}, "router"),
        ({"router": np.zeros((2, 5)), "inputs": np.zeros((4, 2))}, "router"),
        ({"expert_outputs": np.zeros((4, 3, 1))}, "expert_outputs"),
        ({"previous_probs": PROBS[:2]}, "previous_probs"),
        ({"logits": PROBS}, "logits"),
        ({"top_k": 3}, "top_k"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"neighbours": 9}, "neighbours"),
    ],
)
def test_arguments_that_do_not_fit(arguments, path):
    with pytest.raises(moelab.UserError) as caught:
        moelab.analyze(PROBS, **arguments)
    assert caught.value.path == path
    assert "--" not in str(caught.value)


def nested(depth: int) -> dict:
    document: dict = {}
    for _ in range(depth):
        document = {"a": document}
    return document


def cyclic() -> dict:
    document: dict = {}
    document["itself"] = document
    return document


@pytest.mark.parametrize(
    "scenario",
    [
        3,
        None,
        "",
        b"bytes",
        ["a"],
        "no/such/file.json",
        {},
        {"name": "x"},
        {1: 2},
        {"name": math.nan},
        {"name": object()},
        {"name": "x", "data": {"generator": b"x"}},
        {"name": "\ud800"},
        nested(5000),
        cyclic(),
        {f"key{i}": i for i in range(300_000)},
        {"name": "x" * 20_000_000},
    ],
    ids=lambda value: type(value).__name__,
)
def test_scenarios_that_are_refused(scenario):
    start = time.monotonic()
    with pytest.raises(moelab.UserError):
        moelab.validate(scenario)
    assert time.monotonic() - start < 30


def test_huge_counts_are_refused_before_they_cost_memory(tiny):
    tiny["model"]["experts"] = 2**31 - 1
    with pytest.raises(moelab.UserError):
        moelab.validate(tiny)
    tiny["model"]["experts"] = 4
    with pytest.raises(moelab.UserError):
        moelab.validate(tiny, overrides={"seeds.count": 10**12})


@pytest.mark.parametrize("overrides", [3, ["a=1"], {"": 1}, {1: 1}, {"a=b": 1}, {"model.experts": object()}])
def test_overrides_that_are_refused(tiny, overrides):
    with pytest.raises(moelab.UserError) as caught:
        moelab.validate(tiny, overrides=overrides)
    assert caught.value.path.startswith("overrides")


def test_an_unknown_vector_level_is_bad_input(tmp_path):
    import subprocess
    import sys

    code = "import moelab\ntry: moelab.validate({})\nexcept moelab.UserError as error: print(error.path)"
    environment = {**os.environ, "MOELAB_VECTOR_LEVEL": "none_such"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "MOELAB_VECTOR_LEVEL"


@pytest.mark.parametrize("wrong", ["\ud800", "a\0b", 3, b"a"])
def test_texts_that_are_none(tiny, wrong):
    for ask in (
        lambda: moelab.validate(wrong),
        lambda: moelab.validate(tiny, profile=wrong),
        lambda: moelab.validate(tiny, overrides={wrong: 1}),
        lambda: moelab.kinds(wrong),
        lambda: moelab.check([wrong]),
        lambda: moelab.check(wrong),
        lambda: moelab.sample(tiny, arm=wrong),
        lambda: moelab.sample(tiny, at={"data.train_samples": wrong}),
        lambda: moelab.read(wrong),
        lambda: moelab.read(".", plan=wrong),
        lambda: moelab.run(tiny, out=wrong, progress=False),
        lambda: moelab.Model.load(wrong),
    ):
        with pytest.raises(moelab.UserError):
            ask()


def test_folders_that_hold_no_run(tmp_path):
    for folder in (tmp_path, tmp_path / "none", "", 3, "a\0b"):
        with pytest.raises(moelab.UserError):
            moelab.read(folder)


def test_random_calls(tmp_path):
    """Whatever is handed in, the answer is a result or one UserError; MOELAB_FUZZ_SECONDS for longer."""
    counts = fuzz(float(os.environ.get("MOELAB_FUZZ_SECONDS", "5")), 7, tmp_path)
    assert {end for _, end in counts} == {"answered", "refused"}


def test_models_that_no_memory_holds(tiny, tmp_path):
    tiny["model"]["expert"] |= {"width": 10**6, "depth": 3}
    for ask in (
        lambda: moelab.train(np.zeros((8, 6)), np.zeros((8, 3)), model=tiny["model"], train=tiny["train"]),
        lambda: moelab.run(tiny, out=tmp_path / "run", progress=False),
    ):
        with pytest.raises(OSError, match="MB are available") as caught:
            ask()
        assert "--" not in str(caught.value) and "force" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pythom", "python", "zzz"])
def test_scenarios_are_never_offered_a_router_of_python(tiny, kind):
    tiny["model"]["router"] = {"kind": kind}
    with pytest.raises(moelab.UserError) as caught:
        moelab.validate(tiny)
    assert caught.value.path == "model.router.kind"
    offered = caught.value.message.partition(";")[2]
    assert "python" not in offered and ("linear" in offered or kind == "python"), caught.value.message
