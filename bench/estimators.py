"""moelab's estimators beside scikit-learn's MLP on scikit-learn's five small data sets.

    python bench/estimators.py [iris wine …] [--seeds 2]

Every estimator has its defaults. A number is the mean test score of 5 folds and some seeds: R² for diabetes, accuracy
for the others. The last column is the MLP on standardised inputs.
"""

import argparse
import statistics
import warnings

from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import moelab

SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}


def score(make, x, y, seeds):
    return statistics.mean(
        float(value) for seed in range(seeds) for value in cross_val_score(make(random_state=seed), x, y, cv=5)
    )


def standardised(mlp):
    return lambda random_state: make_pipeline(StandardScaler(), mlp(random_state=random_state))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    if unknown := [name for name in options.sets if name not in SETS]:
        parser.error(f"no data set {unknown[0]!r}; there are {', '.join(SETS)}")
    warnings.simplefilter("ignore")  # the MLP's default of 200 epochs ends before it converges
    print("| data | mixture | scikit-learn's MLP | the MLP on standardised inputs |")
    print("|---|---|---|---|")
    for name in options.sets or SETS:
        x, y = SETS[name](return_X_y=True)
        is_regression = name == "diabetes"
        mixture = moelab.MoERegressor if is_regression else moelab.MoEClassifier
        mlp = MLPRegressor if is_regression else MLPClassifier
        scores = [score(make, x, y, options.seeds) for make in (mixture, mlp, standardised(mlp))]
        print(f"| {name} |", " | ".join(f"{value:.3f}" for value in scores), "|", flush=True)


main()
