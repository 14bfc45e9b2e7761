"""Samples of a run, metrics of outputs on them, and models of the user's as arms."""

from __future__ import annotations

import shutil
from concurrent.futures import CancelledError, ProcessPoolExecutor
from threading import Event

import numpy as np
import pytest
from conftest import tiny_scenario
from test_samples import language_scenario

import moelab

pandas = pytest.importorskip("pandas")


@pytest.fixture
def run(tiny_run, tmp_path) -> moelab.Run:
    """A copy that a test may change."""
    return moelab.read(shutil.copytree(tiny_run.directory, tmp_path / "run"))


def ridge(sample: moelab.Sample) -> dict[str, np.ndarray]:
    """A linear fit; at the top level, so that other processes can call it."""
    x = np.c_[sample.x, np.ones(len(sample.x))]
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ sample.y)
    return {"outputs_top1": np.c_[sample.test_x, np.ones(len(sample.test_x))] @ weights}


def test_samples_are_those_of_the_cells(tiny_run):
    cells = tiny_run.cells
    samples = list(tiny_run.samples("frozen"))
    own = cells[cells.arm == "frozen"]
    assert [sample.cell for sample in samples] == list(own.cell)
    assert [sample.point["data.train_samples"] for sample in samples] == list(own["data.train_samples"])
    assert [len(sample.x) for sample in samples] == list(own["data.train_samples"])
    assert {sample.arm for sample in tiny_run.samples()} == {"learned"}
    with pytest.raises(moelab.UserError, match="learned, frozen"):
        next(tiny_run.samples("learnt"))


def test_samples_have_the_overrides_of_the_run(tmp_path):
    scenario = tiny_scenario() | {"claims": [], "figures": []}
    run = moelab.run(scenario, overrides={"data.mean_std": 0.5, "seeds.count": 1}, out=tmp_path / "run", progress=False)
    own, others = next(run.samples()), moelab.sample(scenario)
    assert own.checksum != others.checksum
    assert own.checksum == moelab.sample(scenario, overrides={"data.mean_std": 0.5}).checksum


def test_measures_are_the_programs(tiny_run):
    for arm in ("learned", "frozen"):
        sample = next(tiny_run.samples(arm))
        arrays = tiny_run.arrays(sample.cell)
        measured = sample.measure(
            outputs_top1=arrays["test_outputs_top1"], outputs_soft=arrays["test_outputs_soft"], probs=arrays["test_probs"]
        )
        recorded = tiny_run.cells.set_index("cell").loc[sample.cell]
        common = set(measured) & set(recorded.index)
        assert {"test_nmse_top1", "test_loss_soft", "test_loss_eval", "cluster_entropy"} <= common
        for name in common:
            assert measured[name] == pytest.approx(recorded[name], rel=1e-12), name


def test_measures_of_ids():
    random = np.random.default_rng(1)
    sample = moelab.sample(language_scenario())
    logits = random.normal(size=(*sample.test_y.shape, 12))
    told = sample.measure(outputs_soft=logits)
    shares = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    scored = sample.test_y >= 0
    expected = -np.take_along_axis(shares, np.maximum(sample.test_y, 0)[..., None], -1)[..., 0][scored].mean()
    assert told == {"test_loss_soft": pytest.approx(expected, rel=1e-12)}
    with pytest.raises(moelab.UserError) as caught:
        sample.measure(outputs_soft=logits[:, :-1])
    assert caught.value.path == "outputs_soft"
    with pytest.raises(moelab.UserError, match="needs outputs_top1, outputs_soft, probs or logits"):
        sample.measure()


def test_types_of_a_sample(tiny_run):
    sample = next(tiny_run.samples())
    single = sample.numpy(np.float32)
    assert (single.x.dtype, single.labels.dtype) == (np.float32, np.int64)
    assert single.checksum == sample.checksum and np.array_equal(single.x, sample.x.astype(np.float32))
    assert sample.place == {"seed": 0, "data.train_samples": 32, "checksum": sample.checksum}


def test_tensors_of_a_sample(tiny_run):
    torch = pytest.importorskip("torch")
    sample = next(tiny_run.samples())
    tensors = sample.torch()
    assert torch.nn.Linear(6, 3)(tensors.x).shape == tensors.y.shape
    assert tensors.labels.dtype == torch.int64 and tensors.x.dtype == torch.get_default_dtype()
    assert sample.torch(torch.float64).x.dtype == torch.float64
    outputs = torch.nn.Linear(6, 3)(tensors.test_x)
    assert tensors.measure(outputs_top1=outputs).keys() == sample.measure(outputs_top1=outputs).keys()


def test_a_judged_arm_is_an_imported_one(run, moelab_program):
    assert run.judge("mine", ridge) is run
    cells = run.cells
    own = cells[cells.arm == "mine"]
    assert (own.state == "done").all() and len(own) == 6
    for sample, nmse in zip(run.samples(), own.test_nmse_top1):
        residual = ridge(sample)["outputs_top1"] - sample.test_y
        assert nmse == pytest.approx((residual**2).mean() / sample.test_y.var(axis=0).mean(), rel=1e-12)
    claims = run.claims
    assert len(claims[claims.id == "learned_beats_frozen@mine"]) == 2
    assert moelab_program.json("claims", run.directory) == run.verdicts()
    run.remove_arm("mine")
    assert set(run.cells.arm) == {"learned", "frozen"}
    with pytest.raises(moelab.UserError) as caught:
        run.remove_arm("mine")
    assert caught.value.path == "arm"


def test_judging_goes_on_where_it_stopped(run):
    calls: list[str] = []

    def fit(sample: moelab.Sample) -> dict[str, float]:
        if len(calls) == 2:
            calls.clear()
            raise RuntimeError("the power failed")
        calls.append(sample.cell)
        return {"test_nmse_top1": 0.5}

    with pytest.raises(RuntimeError):
        run.judge("mine", fit)
    states = run.cells.query("arm == 'mine'").state
    assert list(states) == ["done"] * 2 + ["missing"] * 4

    def rest(sample: moelab.Sample) -> dict[str, float]:
        calls.append(sample.cell)
        return {"test_nmse_top1": 0.25, "test_loss_top1": float("nan")} if sample.seed == 2 else {"test_nmse_top1": 0.25}

    run.judge("mine", rest)
    assert len(calls) == 4
    own = run.cells.query("arm == 'mine'")
    assert list(own.test_nmse_top1[:2]) == [0.5, 0.5]
    assert list(own.state) == ["done", "done", "diverged", "done", "done", "diverged"]
    run.judge("mine", rest)
    assert len(calls) == 4


def test_judging_in_several_processes(run):
    pytest.importorskip("joblib")
    run.judge("jobs", ridge, n_jobs=2)
    with ProcessPoolExecutor(2) as pool:
        told = []
        run.judge("pool", ridge, executor=pool, progress=told.append)
    assert told[-1].finished == told[-1].total == 6
    run.judge("alone", ridge)
    table = run.cells.set_index("arm").test_nmse_top1
    assert list(table["jobs"]) == list(table["pool"]) == list(table["alone"])


def test_judging_is_cancelled(run):
    event = Event()

    def fit(sample: moelab.Sample) -> dict[str, float]:
        event.set()
        return {"test_nmse_top1": 0.5}

    with pytest.raises(CancelledError):
        run.judge("mine", fit, cancel=event)
    assert list(run.cells.query("arm == 'mine'").state).count("done") == 1


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (3, "needs a function"),
        (lambda sample: None, "needs a dict"),
        (lambda sample: {}, "no metric of the run"),
        (lambda sample: {"test_nmse_top1": "low"}, "needs a number"),
        (lambda sample: {"test_nmse_top": 0.5}, "did you mean 'test_nmse_top1'"),
        (lambda sample: {"outputs_top1": sample.y}, "needs (100, 3)"),
    ],
)
def test_functions_that_are_refused(run, fit, words):
    with pytest.raises(moelab.UserError) as caught:
        run.judge("mine", fit)
    assert words in str(caught.value)
    with pytest.raises(moelab.UserError):
        run.judge("learned", ridge)


def test_rows_of_other_data_are_refused(run):
    rows = [{**sample.place, "test_nmse_top1": 0.1} for sample in run.samples()]
    run.add_arm("mine", pandas.DataFrame(rows))
    assert (run.cells.query("arm == 'mine'").state == "done").all()
    other = tiny_scenario()
    other["data"]["mean_std"] = 1.0
    wrong = [
        {**moelab.sample(other, seed=row["seed"], at={"data.train_samples": row["data.train_samples"]}).place,
         "test_nmse_top1": 0.1}
        for row in rows
    ]
    with pytest.raises(moelab.UserError, match="not the plan's, first at seed 0, data.train_samples 32"):
        run.add_arm("other", pandas.DataFrame(wrong))
    assert "other" not in set(run.cells.arm)
    with pytest.warns(UserWarning, match="no column 'checksum'"):
        run.add_arm("unsure", pandas.DataFrame(rows).drop(columns="checksum"))
