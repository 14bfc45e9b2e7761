"""train: the program's numbers, saved and loaded; bad arrays and options."""

from __future__ import annotations

import json
import math
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from conftest import tiny_scenario

import moelab

MODEL = tiny_scenario()["model"]
TRAIN = tiny_scenario()["train"]


@pytest.fixture(scope="module")
def data() -> moelab.Sample:
    return moelab.sample(tiny_scenario(), seed=1, at={"data.train_samples": 64})


@pytest.fixture(scope="module")
def model(data: moelab.Sample) -> moelab.Model:
    return moelab.train(data.x, data.y, model=MODEL, train=TRAIN, labels=data.labels, seed=1)


def cell_arrays(run: moelab.Run, arm: str, seed: int, samples: int) -> dict[str, np.ndarray]:
    table = run.table()
    keys = zip(table["cell"], table["arm"], table["seed"], table["data.train_samples"])
    (cell,) = [cell for cell, *rest in keys if rest == [arm, seed, samples]]
    return run.arrays(cell)


def test_the_parameters_are_those_of_the_scenarios_cell(tiny_run, model, data):
    saved = cell_arrays(tiny_run, "learned", 1, 64)
    own = model.arrays()
    assert own
    for name, array in own.items():
        assert array.tobytes() == saved[name].tobytes(), name
    assert model.predict(data.test_x, gating="top1").tobytes() == saved["test_outputs_top1"].tobytes()
    assert model.predict(data.test_x, gating="soft").tobytes() == saved["test_outputs_soft"].tobytes()
    assert model.route(data.test_x).tobytes() == saved["test_probs"].tobytes()
    other = moelab.train(data.x, data.y, model=MODEL, train=TRAIN, seed=2)
    assert other.arrays()["router_weight"].tobytes() != own["router_weight"].tobytes()


@pytest.mark.parametrize("value", [np.array([0.1, np.nan]), np.array([0.1, np.inf], dtype=object), [0.1, math.nan]])
def test_a_value_of_an_array_that_is_not_finite_has_its_path(data, value):
    with pytest.raises(moelab.UserError, match="needs a finite number") as caught:
        moelab.train(data.x, data.y, model=MODEL, train=TRAIN | {"lr": value})
    assert caught.value.path == "train.lr[1]"


def test_training_in_double_learns(data):
    exact = moelab.train(data.x, data.y[:, 0], model=MODEL, train=TRAIN | {"precision": "double", "steps": 2000})
    outputs = exact.predict(data.x, gating="soft")
    assert outputs.shape == (64, 1)
    error = np.mean((outputs[:, 0] - data.y[:, 0]) ** 2)
    assert error < 0.1 * data.y[:, 0].var()


def test_sequences_have_outputs_for_their_tokens():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(20, 3, 5)), random.normal(size=(20, 3, 2))
    model = moelab.train(x, y, model=MODEL, train=TRAIN)
    assert model.predict(x).shape == (20, 3, 2)
    assert model.route(x).shape == (20, 3, 4)
    assert np.allclose(model.route(x).sum(axis=-1), 1)
    assert moelab.train(x, y[:, 0], model=MODEL, train=TRAIN).predict(x).shape == (20, 2)


def test_a_model_is_saved_loaded_and_pickled(model, data, tmp_path):
    model.save(tmp_path / "model.npz")
    for copy in (moelab.Model.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert copy.predict(data.test_x).tobytes() == model.predict(data.test_x).tobytes()
        assert copy.spec == model.spec and copy.about == model.about
        assert repr(copy) == repr(model)
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


def test_files_that_hold_no_model_are_refused(model, tmp_path):
    file = tmp_path / "model.npz"
    model.save(file)
    content = file.read_bytes()
    for damaged in (b"", b"text", content[: len(content) // 2], content[:100] + b"\0" * 50 + content[150:]):
        file.write_bytes(damaged)
        with pytest.raises(moelab.UserError) as caught:
            moelab.Model.load(file)
        assert caught.value.path == "file"
    np.savez(file, weights=np.ones(3))
    with pytest.raises(moelab.UserError):
        moelab.Model.load(file)
    np.savez(file, moelab_model=np.array([object()], dtype=object))
    with pytest.raises(moelab.UserError):
        moelab.Model.load(file)
    with pytest.raises(moelab.UserError):
        moelab.Model.load(tmp_path / "none.npz")
    with pytest.raises(moelab.UserError):
        moelab.Model.load(tmp_path)


def test_arrays_of_another_model_are_refused(model, tmp_path):
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    told = json.loads(str(arrays["moelab_model"][()]))
    told["spec"]["model"]["experts"] = 5
    np.savez(tmp_path / "other.npz", **(arrays | {"moelab_model": np.array(json.dumps(told))}))
    with pytest.raises(moelab.UserError) as caught:
        moelab.Model.load(tmp_path / "other.npz")
    assert caught.value.path == "file"


@pytest.mark.parametrize(("size", "value"), [("tokens", 2), ("target_per_token", True)])
def test_tokens_without_sequences_are_refused(model, tmp_path, size, value):
    """Inputs (n, d) would be read as n rows of as many tokens."""
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    told = json.loads(str(arrays["moelab_model"][()]))
    told["about"][size] = value
    np.savez(tmp_path / "other.npz", **(arrays | {"moelab_model": np.array(json.dumps(told))}))
    with pytest.raises(moelab.UserError, match="tokens without sequences"):
        moelab.Model.load(tmp_path / "other.npz")


@pytest.mark.parametrize("missing", ["spec", "about", "format", "spec.model", "spec.seed", "about.steps"])
def test_documents_of_models_with_a_gap_are_refused(model, tmp_path, missing):
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    told = json.loads(str(arrays.pop("moelab_model")[()]))
    part, _, name = missing.rpartition(".")
    (told[part] if part else told).pop(name)
    np.savez(tmp_path / "other.npz", moelab_model=np.array(json.dumps(told)), **arrays)
    with pytest.raises(moelab.UserError) as caught:
        moelab.Model.load(tmp_path / "other.npz")
    assert caught.value.path == "file"


def test_a_sample_is_shown_by_its_shapes(data):
    shown = repr(data)
    assert "seed 1, data.train_samples 64" in shown and "x (64, 6)" in shown and len(shown) < 300
    assert data == data and data != moelab.sample(tiny_scenario(), seed=1)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"x": np.zeros(4)}, "x"),
        ({"x": np.zeros((64, 6), object)}, "x"),
        ({"x": np.full((64, 6), math.nan)}, "x"),
        ({"x": np.zeros((0, 6))}, "x"),
        ({"y": np.zeros((63, 3))}, "y"),
        ({"y": np.full((64, 3), math.inf)}, "y"),
        ({"y": np.zeros((64, 2, 3))}, "y"),
        ({"labels": np.zeros(64)}, "labels"),
        ({"labels": np.full(64, -1)}, "labels"),
        ({"labels": np.zeros((64, 2), int)}, "labels"),
        ({"model": MODEL | {"expertss": 3}}, "model.expertss"),
        ({"model": MODEL | {"router": {"kind": "linaer"}}}, "model.router.kind"),
        ({"model": MODEL | {"router": {"kind": "cnn"}}}, "model.router.kind"),
        ({"model": 3}, "model"),
        ({"train": {"optimizer": "adam"}}, None),
        ({"train": TRAIN | {"lr": math.nan}}, "train.lr"),
        ({"train": TRAIN | {"gradient": "population"}}, None),
        ({"loss": {"task": "mes"}}, "loss.task"),
        ({"loss": {"task": "cross_entropy"}}, "y"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_bad_input_is_refused_at_its_path(data, change, path):
    given = {"x": data.x, "y": data.y, "model": MODEL, "train": TRAIN} | change
    with pytest.raises(moelab.UserError) as caught:
        moelab.train(given.pop("x"), given.pop("y"), **given)
    assert path is None or caught.value.path == path


def test_inputs_of_another_width_are_refused(model, data):
    for ask in (model.predict, model.route):
        with pytest.raises(moelab.UserError) as caught:
            ask(data.x[:, :5])
        assert caught.value.path == "x"
    with pytest.raises(moelab.UserError) as caught:
        model.route(data.x, layer=1)
    assert caught.value.path == "layer"
    with pytest.raises(moelab.UserError) as caught:
        model.predict(data.x, gating="sotf")
    assert caught.value.path == "gating"


def test_divergence_is_told(data):
    with pytest.warns(UserWarning, match="diverged"):
        model = moelab.train(data.x, data.y, model=MODEL, train=TRAIN | {"optimizer": "sgd", "lr": 1e30})
    assert model.about["state"] == "diverged"


def test_two_threads_train_and_predict_the_same(data, model):
    answers = []

    def work() -> None:
        own = moelab.train(data.x, data.y, model=MODEL, train=TRAIN, labels=data.labels, seed=1)
        answers.append((own.predict(data.test_x).tobytes(), model.predict(data.test_x).tobytes()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = model.predict(data.test_x).tobytes()
    assert answers == [(expected, expected)] * 2


@pytest.mark.parametrize(
    "router", [{"kind": "oracle"}, {"kind": "adaptive_clustering", "memberships": "oracle"}]
)
def test_a_router_that_looks_at_labels_needs_them(data, tmp_path, router):
    own = MODEL | {"router": router}
    for refused in (
        lambda: moelab.train(data.x, data.y, model=own, train=TRAIN),
        lambda: moelab.train(data.x, data.y, model=own, train=TRAIN, labels=data.labels).route(data.test_x),
        lambda: moelab.train(data.x, data.y, model=own, train=TRAIN, labels=data.labels).predict(data.test_x),
    ):
        with pytest.raises(moelab.UserError, match="true cluster of every row") as caught:
            refused()
        assert caught.value.path == "labels"
    model = moelab.train(data.x, data.y, model=own, train=TRAIN, labels=data.labels)
    outputs = model.predict(data.test_x, labels=data.test_labels)
    assert outputs.shape == data.test_y.shape
    model.save(tmp_path / "model.npz")
    copy = moelab.Model.load(tmp_path / "model.npz")
    assert copy.predict(data.test_x, labels=data.test_labels).tobytes() == outputs.tobytes()
    with pytest.raises(moelab.UserError, match="labels"):
        copy.route(data.test_x)
    for wrong in (data.test_labels[:-1], -1 - data.test_labels):
        with pytest.raises(moelab.UserError, match="labels"):
            model.route(data.test_x, labels=wrong)


def test_an_oracle_serves_every_row_by_its_label(data):
    model = moelab.train(data.x, data.y, model=MODEL | {"router": {"kind": "oracle"}}, train=TRAIN, labels=data.labels)
    served = model.route(data.test_x, labels=data.test_labels).argmax(axis=1)
    assert (served == data.test_labels % MODEL["experts"]).all()
    assert (model.route(data.test_x, labels=np.zeros_like(data.test_labels)).argmax(axis=1) == 0).all()


def test_history_is_measured_as_the_program_does(data, tiny_run):
    scenario = tiny_scenario()
    model = moelab.train(
        data.x, data.y, model=scenario["model"], train=scenario["train"], seed=1, eval_set=(data.test_x, data.test_y)
    )
    records = model.records
    assert [row["step"] for row in records] == [0, 20, 40]
    last = records[-1]
    assert last["eval_loss"] == pytest.approx(((model.predict(data.test_x) - data.test_y) ** 2).mean(), rel=1e-12)
    trace = tiny_run.table(trace=True)
    own = [
        trace["train_nmse"][place]
        for place in range(len(trace["cell"]))
        if (trace["arm"][place], trace["seed"][place], trace["data.train_samples"][place]) == ("learned", 1, 64)
    ]
    assert [row["train_nmse"] for row in records] == pytest.approx(own, rel=1e-12)
    pandas = pytest.importorskip("pandas")
    assert isinstance(model.history, pandas.DataFrame) and list(model.history.step) == [0, 20, 40]
    plain = moelab.train(data.x, data.y, model=scenario["model"], train=scenario["train"], seed=1, history=False)
    assert plain.records == [] and plain.predict(data.test_x).tobytes() == model.predict(data.test_x).tobytes()


def test_history_of_classes(data):
    classes = np.eye(3)[np.arange(len(data.x)) % 3]
    model = moelab.train(data.x, classes, model=MODEL, train=TRAIN, loss={"task": "cross_entropy"})
    assert set(model.records[0]) == {"step", "train_loss", "train_accuracy"}


def test_classes_are_whole_numbers_too():
    random = np.random.default_rng(4)
    x = random.normal(size=(60, 3))
    classes = (x[:, 0] > 0) + (x[:, 1] > 0).astype(int)
    options = dict(
        model={"experts": 2, "router": {"kind": "linear"}, "expert": {"kind": "mlp", "depth": 2, "width": 8}},
        train={"optimizer": "adam", "lr": 0.02, "batch_size": 20, "steps": 60}, loss={"task": "cross_entropy"},
    )
    of_numbers = moelab.train(x, classes, eval_set=(x[:9], classes[:9] * 0), **options)
    of_indicators = moelab.train(x, np.eye(3)[classes], eval_set=(x[:9], np.eye(3)[classes[:9] * 0]), **options)
    np.testing.assert_array_equal(of_numbers.predict(x), of_indicators.predict(x))
    assert of_numbers.records == of_indicators.records
    with pytest.raises(moelab.UserError, match="indicator"):
        moelab.train(x, classes - 1, **options)


def test_a_callback_sees_the_model_and_ends_training(data):
    seen = []

    def callback(row, model):
        seen.append((row["step"], model.predict(data.x)))
        return row["step"] >= 20

    model = moelab.train(data.x, data.y, model=MODEL, train=TRAIN, callback=callback)
    assert [step for step, _ in seen] == [0, 20] and model.about["steps"] == 20
    assert model.about["state"] == "done" and np.array_equal(seen[-1][1], model.predict(data.x))
    with pytest.raises(ZeroDivisionError):
        moelab.train(data.x, data.y, model=MODEL, train=TRAIN, callback=lambda row, model: 1 / 0)


def test_random_states(data):
    def trained(**options):
        return moelab.train(data.x, data.y, model=MODEL, train=TRAIN, **options).predict(data.x).tobytes()

    assert trained(random_state=3) == trained(seed=3) != trained()
    assert trained(random_state=np.random.default_rng(1)) == trained(random_state=np.random.default_rng(1))
    assert trained(random_state=np.random.RandomState(1)) == trained(random_state=np.random.RandomState(1))
    for wrong in ({"random_state": -1}, {"random_state": "a"}, {"random_state": 1, "seed": 2}):
        with pytest.raises(moelab.UserError) as caught:
            trained(**wrong)
        assert caught.value.path == "random_state"
    with pytest.raises(moelab.UserError) as caught:
        trained(eval_set=data.x)
    assert caught.value.path == "eval_set"


def test_a_dense_model_of_its_own_size_has_no_router(data):
    model = moelab.train(data.x, data.y, model={"kind": "dense", "width": 8, "depth": 2}, train=TRAIN, seed=1)
    assert model.predict(data.test_x).shape == data.test_y.shape


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (lambda x, y: (x, y.ravel()), "eval_set.y", r"has shape \(192,\), needs \(64, 3\)"),
        (lambda x, y: (x, y[:, 0]), "eval_set.y", r"has shape \(64,\), needs \(64, 3\)"),
        (lambda x, y: (x, y[1:]), "eval_set.y", "has shape"),
        (lambda x, y: (x[:, :2], y), "eval_set.x", r"has shape \(64, 2\), needs \(n, 6\)"),
        (lambda x, y: (x * np.nan, y), "eval_set.x", "holds nan in row 0"),
        (lambda x, y: (x, y * np.nan), "eval_set.y", "holds nan in row 0"),
    ],
)
def test_an_evaluation_set_that_does_not_fit_is_refused(data, change, path, message):
    rows: list[Any] = []
    with pytest.raises(moelab.UserError, match=message) as caught:
        moelab.train(data.x, data.y, model=MODEL, train=TRAIN, eval_set=change(data.x, data.y),
                     callback=lambda row, _: rows.append(row))
    assert caught.value.path == path
    assert not rows


def test_targets_of_one_column_may_lack_their_last_axis(data):
    for y, eval_y in ((data.y[:, 0], data.y[:, :1]), (data.y[:, :1], data.y[:, 0])):
        model = moelab.train(data.x, y, model=MODEL, train=TRAIN, eval_set=(data.x, eval_y))
        assert math.isfinite(model.records[-1]["eval_loss"])
