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


def test_bad_options_are_user_errors():
    with pytest.raises(moelab.UserError) as caught:
        moelab.MoERegressor(model={"experts": 0}).fit(np.ones((5, 2)), np.arange(5.0))
    assert caught.value.path == "model.experts"
    with pytest.raises(moelab.UserError) as caught:
        moelab.MoEClassifier(loss={"task": "mse"}).fit(np.eye(4), [0, 1, 0, 1])
    assert caught.value.path == "loss.task"
