"""The estimators: scikit-learn's own checks, and that they learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import moelab  # noqa: E402

QUICK = {"optimizer": "adam", "lr": 0.02, "batch_size": 32, "steps": 300}


@parametrize_with_checks([moelab.MoERegressor(), moelab.MoEClassifier()])
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_they_learn_and_are_searched():
    random = np.random.default_rng(1)
    x = random.normal(size=(300, 4))
    y = np.where(x[:, 0] > 0, x[:, 1], -2 * x[:, 2])
    regressor = moelab.MoERegressor(train=QUICK).fit(x[:200], y[:200])
    assert regressor.score(x[200:], y[200:]) > 0.8
    assert regressor.route(x).shape == (300, 4)
    labels = np.array(["left", "right"])[(y > 0).astype(int)]
    classifier = moelab.MoEClassifier(train=QUICK).fit(x[:200], labels[:200])
    assert classifier.score(x[200:], labels[200:]) > 0.85
    assert np.allclose(classifier.predict_proba(x).sum(axis=1), 1)
    search = GridSearchCV(moelab.MoERegressor(train=QUICK), {"seed": [0, 1]}, cv=2).fit(x[:100], y[:100])
    assert search.best_params_["seed"] in (0, 1)


def noisy(rows: int = 240):
    random = np.random.default_rng(2)
    x = random.normal(size=(rows, 3)) * [1, 100, 0.01] + [5, 0, 0]
    return x, np.where(x[:, 0] > 5, x[:, 1], -50.0) + random.normal(size=rows)


def test_parameters_are_flat_and_searched():
    x, y = noisy()
    grid = {"n_experts": [1, 4], "hidden": [8, (8, 8)], "router": ["linear"], "gating": ["soft", "top1"]}
    search = GridSearchCV(moelab.MoERegressor(max_steps=200), grid, cv=2, error_score="raise").fit(x, y)
    assert set(search.best_params_) == set(grid)
    nested = GridSearchCV(moelab.MoEClassifier(max_steps=50), {"model__experts": [2, 4]}, cv=2, error_score="raise")
    assert nested.fit(x, y > 0).best_estimator_.model_.about["experts"] in (2, 4)
    own = moelab.MoERegressor().set_params(model__expert__width=8, train__steps=20).fit(x, y)
    assert own.model_.spec["model"]["expert"] == {"kind": "mlp", "depth": 2, "width": 8}  # merged
    with pytest.raises(ValueError, match="Invalid parameter"):
        moelab.MoERegressor().set_params(nothing__such=3)


def test_units_of_inputs_and_targets_do_not_matter():
    x, y = noisy()
    fitted = moelab.MoERegressor(random_state=1).fit(x[:160], y[:160])
    assert fitted.score(x[160:], y[160:]) > 0.8
    scaled = moelab.MoERegressor(random_state=1).fit(1024 * x[:160], 1024 * y[:160])
    assert np.allclose(scaled.predict(1024 * x) / 1024, fitted.predict(x), rtol=1e-4, atol=1e-3)
    plain = moelab.MoERegressor(random_state=1, standardize=False).fit(x[:160], y[:160])
    assert plain.score(x[160:], y[160:]) < fitted.score(x[160:], y[160:])


def test_training_is_told_and_ends_early(capsys):
    x, y = noisy()
    fitted = moelab.MoERegressor(n_experts=2, max_steps=5000, random_state=1, verbose=True).fit(x, y)
    curve = fitted.validation_loss_curve_
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]
    best = int(np.argmin(curve))
    assert best < len(curve) - 1 < 50 and fitted.n_iter_ == 100 * best == fitted.model_.about["steps"]
    assert len(fitted.loss_curve_) == best + 1
    told = capsys.readouterr().out
    parts = [told.count(f"part {place} of 5, step") for place in range(1, 6)]
    assert min(parts) == len(curve) and told.count("eval_loss") == sum(parts)
    assert told.count("\nstep ") == best + 1
    whole = moelab.MoERegressor(max_steps=60, early_stopping=False).fit(x, y)
    assert whole.n_iter_ == 60 and not hasattr(whole, "validation_loss_curve_")


def test_experts_begin_with_equal_weight_and_the_router_is_slower():
    x, y = noisy(80)
    fitted = moelab.MoERegressor(max_steps=1, early_stopping=False, learning_rate=1e-9).fit(x, y)
    assert np.allclose(fitted.route(x), 0.25, atol=1e-6)
    assert fitted.model_.spec["train"]["lr"] == {"expert": 1e-9, "router": pytest.approx(1e-10)}
    rates = {"expert": 0.01, "router": 0.02}
    own = moelab.MoERegressor(max_steps=1, learning_rate=rates, router={"kind": "linear"}).fit(x, y)
    assert own.model_.spec["train"]["lr"] == rates and own.model_.spec["model"]["router"] == {"kind": "linear"}


def test_random_states_repeat():
    x, y = noisy(80)

    def outputs(**options):
        return moelab.MoERegressor(max_steps=30, **options).fit(x, y).predict(x).tobytes()

    assert outputs(random_state=3) == outputs(random_state=3) != outputs(random_state=4)
    assert outputs() == outputs()
    assert outputs(random_state=np.random.RandomState(3)) == outputs(random_state=np.random.RandomState(3))


def test_as_good_as_the_perceptron_of_scikit_learn():
    """The data of python/README.md whose differences are the largest. The page has all five, on more splits."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.datasets import load_diabetes, load_wine
    from sklearn.model_selection import ShuffleSplit, cross_val_score
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = make_pipeline(StandardScaler(), MLPRegressor(random_state=0))
    for data, own, peer in (
        (load_wine, moelab.MoEClassifier(random_state=0), MLPClassifier(random_state=0)),
        (load_diabetes, moelab.MoERegressor(random_state=0), TransformedTargetRegressor(scaled, transformer=StandardScaler())),
    ):
        x, y = data(return_X_y=True)
        splits = ShuffleSplit(5, test_size=0.2, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peers = cross_val_score(peer, x, y, cv=splits).mean()
        assert cross_val_score(own, x, y, cv=splits).mean() >= peers


def test_the_table_of_the_page_is_the_scripts():
    """Every number is made by bench/estimators.py, and no mean difference is worse than chance."""
    import runpy
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    script = runpy.run_path(str(root / "bench" / "estimators.py"))
    shown = script["PLACE"].search((root / "python" / "README.md").read_text()).group(0).splitlines()[1:-1]
    lines = script["table"](["iris"], 2).splitlines()
    assert shown[:2] == lines[:2] and [line.split(" | ")[0] for line in shown[2:]] == [f"| {name}" for name in script["SETS"]]
    for line in shown[2:]:
        for cell in line.strip("| ").split(" | ")[4:]:
            mean, half = (float(part.replace("−", "-")) for part in cell.split(" ± "))
            assert mean + half >= 0, line


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"n_experts": 0}, "n_experts"),
        ({"hidden": (8, 4)}, "hidden"),
        ({"max_steps": 0}, "max_steps"),
        ({"router": "linaer"}, "model.router.kind"),
        ({"validation_fraction": 0.7}, "validation_fraction"),
        ({"learning_rate": -1.0}, "train.lr.expert"),
        ({"random_state": "a"}, "random_state"),
        ({"random_state": 1, "seed": 2}, "random_state"),
        ({"model": 3}, "model"),
        ({"loss": 3}, "loss"),
    ],
)
def test_parameters_that_are_refused(options, path):
    with pytest.raises(moelab.UserError) as caught:
        moelab.MoERegressor(**options).fit(*noisy(20))
    assert caught.value.path == path


def test_bad_options_are_user_errors():
    with pytest.raises(moelab.UserError) as caught:
        moelab.MoERegressor(model={"experts": 0}).fit(np.ones((5, 2)), np.arange(5.0))
    assert caught.value.path == "model.experts"
    with pytest.raises(moelab.UserError) as caught:
        moelab.MoEClassifier(loss={"task": "mse"}).fit(np.eye(4), [0, 1, 0, 1])
    assert caught.value.path == "loss.task"
