"""sample: the program's data sets."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab

SAMPLE_NAMES = {"x": "train_inputs", "y": "train_targets", "labels": "train_labels", "test_x": "test_inputs",
                "test_y": "test_targets", "test_labels": "test_labels"}


def language_scenario():
    return {
        "name": "language",
        "data": {"generator": "synthetic_language", "domains": 2, "vocabulary": 12, "tokens": 8, "train_samples": 6,
                 "test_samples": 5},
        "model": {"kind": "transformer", "width": 8, "layers": 1, "heads": 2, "feed_forward": 8, "moe_layers": "all",
                  "experts": 2, "router": {"kind": "linear"}, "gating": {"train": "soft", "eval": "top1"}},
        "train": {"optimizer": "adam", "lr": 0.01, "batch_size": 4, "steps": 2},
        "loss": {"task": "cross_entropy"},
        "metrics": ["task"],
    }


@pytest.mark.parametrize("kind", ["language", "independent"])
def test_samples_have_the_types_and_values_of_the_programs(moelab_program, tmp_path, kind):
    scenario = language_scenario()
    if kind == "independent":
        scenario = tiny_scenario()
        scenario["data"]["independent"] = True
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario))
    moelab_program.json("sample", file, "--out", tmp_path / "sample")
    drawn = moelab.sample(file)
    for name, stored in SAMPLE_NAMES.items():
        array = np.load(tmp_path / "sample" / f"{stored}.npy")
        own = getattr(drawn, name)
        assert own.dtype == array.dtype and own.shape == array.shape and own.tobytes() == array.tobytes(), name
    assert (drawn.x.dtype == np.int64) == (kind == "language")


def test_sample_is_the_programs(moelab_program, tmp_path):
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(tiny_scenario()))
    words = ("--arm", "frozen", "--seed", 2, "--at", "data.train_samples=64", "--out", tmp_path / "sample")
    told = moelab_program.json("sample", file, *words)
    drawn = moelab.sample(file, arm="frozen", seed=2, at={"data.train_samples": 64})
    assert (drawn.cell, drawn.arm, drawn.seed, drawn.point) == (told["cell"], "frozen", 2, told["point"])
    for name, stored in SAMPLE_NAMES.items():
        array = np.load(tmp_path / "sample" / f"{stored}.npy")
        own = getattr(drawn, name)
        assert own.dtype == array.dtype and own.shape == array.shape and own.tobytes() == array.tobytes()
    for bad, path in (({"arm": "learnt"}, "arm"), ({"seed": 3}, "seed"), ({"seed": -1}, "seed")):
        with pytest.raises(moelab.UserError) as caught:
            moelab.sample(file, **bad)
        assert caught.value.path == path
    with pytest.raises(moelab.UserError, match="needs a value of the sweep"):
        moelab.sample(file, at={"data.train_samples": 5})


def test_samples_of_a_run_carry_its_plan(tmp_path):
    run = moelab.run(tiny_scenario(), out=tmp_path / "run", progress=False)
    cells = set(run.table()["cell"])
    for drawn in run.samples("frozen"):
        assert drawn.numpy().plan == run.plan
        assert drawn.cell in cells
    assert moelab.sample(tiny_scenario()).plan == ""


def test_samples_are_arrays_of_jax():
    jax = pytest.importorskip("jax")
    drawn = moelab.sample(tiny_scenario())
    own = drawn.jax()
    assert isinstance(own.x, jax.Array) and own.x.dtype == np.float32 and own.labels.dtype == np.int32
    np.testing.assert_array_equal(np.asarray(own.test_x), drawn.test_x.astype(np.float32))
    probs = jax.nn.softmax(own.test_x @ jax.numpy.ones((6, 4)) * jax.numpy.arange(4.0), axis=-1)
    told = own.measure(probs=probs, outputs_top1=own.test_y * 0)
    wanted = drawn.measure(probs=np.asarray(probs, np.float64), outputs_top1=drawn.test_y * 0)
    assert told["routing_entropy"] == pytest.approx(wanted["routing_entropy"], rel=1e-5)
    assert told["test_nmse_top1"] == pytest.approx(wanted["test_nmse_top1"], rel=1e-5)


def test_measure_takes_half_precision():
    torch = pytest.importorskip("torch")
    drawn = moelab.sample(tiny_scenario())
    outputs = torch.from_numpy(drawn.test_y).to(torch.bfloat16)
    told = drawn.measure(outputs_top1=outputs)
    assert told == drawn.measure(outputs_top1=outputs.float())
    assert 0 < told["test_nmse_top1"] < 1e-3


def test_measure_takes_nullable_types_of_pandas():
    pandas = pytest.importorskip("pandas")
    drawn = moelab.sample(tiny_scenario())
    half = drawn.test_y / 2
    assert drawn.measure(outputs_top1=pandas.DataFrame(half).convert_dtypes()) == drawn.measure(outputs_top1=half)
    holes = pandas.DataFrame(half).convert_dtypes()
    holes.iloc[0, 0] = pandas.NA
    with pytest.raises(moelab.UserError, match="dtype object"):
        drawn.measure(outputs_top1=holes)


def test_a_converted_sample_is_measured_as_it_was_drawn():
    drawn = moelab.sample(tiny_scenario())
    random = np.random.default_rng(0)
    scores = random.normal(size=(len(drawn.test_x), 4))
    probs = scores.clip(0.1) / scores.clip(0.1).sum(1, keepdims=True)
    given = {"outputs_top1": random.normal(size=drawn.test_y.shape), "probs": probs}
    single = drawn.numpy(np.float32)
    assert single.test_y.dtype == np.float32
    for converted in (single, single.numpy(), pickle.loads(pickle.dumps(single))):
        assert converted.measure(**given) == drawn.measure(**given)
    replaced = replace(single, test_y=single.test_y + 1)
    assert replaced.measure(outputs_top1=single.test_y + 1)["test_loss_top1"] == 0


def test_ids_need_a_score_each():
    drawn = moelab.sample(language_scenario())
    most = int(drawn.test_y.max())
    with pytest.raises(moelab.UserError, match=f"has 5 ids in its last axis, needs at least {most + 1}") as caught:
        drawn.measure(outputs_top1=np.zeros((*drawn.test_y.shape, 5)))
    assert caught.value.path == "outputs_top1"
    with pytest.raises(moelab.UserError, match="has shape"):
        drawn.measure(outputs_top1=np.zeros(drawn.test_y.shape))
    assert drawn.measure(outputs_top1=np.zeros((*drawn.test_y.shape, most + 1)))["test_loss_top1"] > 0
