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


def test_the_first_cell_may_diverge(run):
    run.judge("mine", lambda sample: {"test_nmse_top1": float("inf") if sample.seed == 0 else 0.5})
    assert list(run.cells.query("arm == 'mine'").state) == ["diverged", "done", "done"] * 2


def partly_swept() -> dict:
    """The first arm does not sweep the scale of the router's start."""
    scenario = tiny_scenario() | {"arms": {"frozen": {"model.router.trainable": False}, "learned": {}}}
    scenario["sweep"] = {"model.router.init_scale": {"values": [1, 3], "arms": ["learned"]}, **scenario["sweep"]}
    return scenario | {"claims": [], "figures": [], "save": [], "seeds": {"root": 1, "count": 2}}


def test_samples_sweep_what_an_arm_sweeps(tmp_path):
    run = moelab.run(partly_swept(), out=tmp_path / "run", progress=False)
    assert [sample.point.get("model.router.init_scale") for sample in run.samples()] == [1, 1, 1, 1, 3, 3, 3, 3]
    assert ["model.router.init_scale" in sample.point for sample in run.samples("frozen")] == [False] * 4


@pytest.mark.parametrize(("arm", "count"), [(None, 8), ("frozen", 4)])
def test_arms_that_do_not_sweep_a_path_are_judged(tmp_path, arm, count):
    run = moelab.run(partly_swept(), out=tmp_path / "run", progress=False)
    calls: list[str] = []

    def fit(sample: moelab.Sample) -> dict[str, float]:
        if len(calls) == 1:
            calls.append("")
            raise RuntimeError("the power failed")
        calls.append(sample.cell)
        return {"test_nmse_top1": sample.seed + 1}

    with pytest.raises(RuntimeError):
        run.judge("mine", fit, arm=arm)
    run.judge("mine", fit, arm=arm)
    assert len(calls) == count + 1
    own = run.cells.query("arm == 'mine'")
    assert list(own.state) == ["done"] * 8
    assert list(own.test_nmse_top1) == [1, 2] * 4


def test_rows_of_an_arm_that_does_not_sweep_a_path_are_added(tmp_path):
    run = moelab.run(partly_swept(), out=tmp_path / "run", progress=False)
    rows = [{**sample.place, "test_nmse_top1": 0.5} for sample in run.samples("frozen")]
    frame = pandas.DataFrame(rows).assign(**{"model.router.init_scale": None})
    run.add_arm("mine", frame)
    run.add_arm("other", frame.assign(**{"model.router.init_scale": 3}))
    assert list(run.cells.query("arm == 'mine'").state) == ["done"] * 8
    assert list(run.cells.query("arm == 'other'").state) == ["missing"] * 4 + ["done"] * 4
    with pytest.raises(moelab.UserError, match="not the plan's, first at seed 0, data.train_samples 32;"):
        run.add_arm("wrong", frame.assign(checksum="0"))


def test_samples_of_a_scenario_with_labels_and_profiles(tmp_path):
    scenario = tiny_scenario() | {"figures": []}
    scenario["labels"] = {"learned": "Learned", "data.train_samples=64": "more"}
    scenario["profiles"] = {"quick": {"claims.0.at": "last"}}
    scenario["seeds"]["count"] = 1
    run = moelab.run(scenario, out=tmp_path / "run", progress=False)
    assert [sample.cell for sample in run.samples()] == list(run.cells.query("arm == 'learned'").cell)


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


def test_a_repeated_judgement_says_what_is_there(run, caplog):
    run.judge("mine", lambda sample: {"test_nmse_top1": 0.4})
    assert not caplog.records
    run.judge("mine", lambda sample: {"test_nmse_top1": 9.0})
    assert [record.message for record in caplog.records] == [
        "6 of 6 cells of mine are there already, and fit is not called for them; run.remove_arm('mine') begins anew"
    ]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_outputs_that_are_not_finite_are_those_of_a_diverged_model(run, value):
    run.judge("mine", lambda s: {"outputs_top1": np.full_like(s.test_y, value if s.seed == 2 else 0.5)})
    assert list(run.cells.query("arm == 'mine'").state) == ["done", "done", "diverged"] * 2
    with pytest.raises(moelab.UserError, match="has shape") as caught:
        run.judge("other", lambda s: {"outputs_top1": np.full((3, 3), np.nan)})
    assert caught.value.path == "outputs_top1"
    sample = next(run.samples())
    with pytest.raises(moelab.UserError) as caught:
        sample.measure(outputs_top1=np.full_like(sample.test_y, np.nan))
    assert caught.value.path == "outputs_top1"


@pytest.mark.parametrize("wrong", [{"executor": 3}, {"cancel": 3}])
def test_a_wrong_executor_or_cancel_is_refused(run, wrong):
    with pytest.raises(moelab.UserError) as caught:
        run.judge("mine", ridge, **wrong)
    assert caught.value.path == next(iter(wrong))
