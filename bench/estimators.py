"""Compares moelab's estimators with scikit-learn's MLP on scikit-learn's five small data sets.

    python bench/estimators.py [iris wine …] [--splits 20] [--write python/README.md]

Every estimator has its defaults. The score on held-out rows is R² for diabetes and accuracy for the others. All three
estimators train on four fifths of the rows, in the same random splits, stratified by class. The second MLP has
standardised inputs, and standardised targets in regression. The mixture standardises both itself.

A difference is the mixture's score minus an MLP's score, paired by split, with a 95 % interval.

--write puts the table between the comments that name this script in a page.
"""

import argparse
import re
import statistics
import sys
import warnings
from pathlib import Path

from scipy.stats import t
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
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
TEST_SHARE = 0.2
PLACE = re.compile(r"(<!-- table of bench/estimators.py -->\n).*?(<!-- end of table -->)", re.S)


def standardised(seed, is_regression):
    if not is_regression:
        return make_pipeline(StandardScaler(), MLPClassifier(random_state=seed))
    mlp = make_pipeline(StandardScaler(), MLPRegressor(random_state=seed))
    return TransformedTargetRegressor(mlp, transformer=StandardScaler())


def estimators(seed, is_regression):
    mixture = moelab.MoERegressor if is_regression else moelab.MoEClassifier
    mlp = MLPRegressor if is_regression else MLPClassifier
    return mixture(random_state=seed), mlp(random_state=seed), standardised(seed, is_regression)


def scores(x, y, splits, is_regression):
    """The score of each estimator on each split."""
    splitter = ShuffleSplit if is_regression else StratifiedShuffleSplit
    found = []
    for seed, (train, test) in enumerate(splitter(splits, test_size=TEST_SHARE, random_state=0).split(x, y)):
        found.append([one.fit(x[train], y[train]).score(x[test], y[test]) for one in estimators(seed, is_regression)])
    return list(zip(*found))


def difference(left, right):
    """The mean of paired differences with half its 95 % interval.

    Splits share rows, so their scores are correlated. The interval comes from the corrected resampled t-test (Nadeau
    and Bengio 2003): mean ± t √((1/J + 1/4) s²), with J splits, J − 1 degrees of freedom, and the variance s² of the J
    differences.
    """
    pairs = [one - other for one, other in zip(left, right)]
    factor = 1 / len(pairs) + TEST_SHARE / (1 - TEST_SHARE)
    half = t.ppf(0.975, len(pairs) - 1) * (factor * statistics.variance(pairs)) ** 0.5
    return statistics.mean(pairs), half


def minus(text):
    return text.replace("-", "−")


def table(names, splits):
    lines = ["| data | mixture | MLP | MLP, standardised | mixture − MLP | mixture − MLP, standardised |", "|---|---|---|---|---|---|"]
    for name in names:
        x, y = SETS[name](return_X_y=True)
        own, *others = scores(x, y, splits, name == "diabetes")
        cells = [f"{statistics.mean(values):.3f}" for values in (own, *others)]
        cells += ["{:+.3f} ± {:.3f}".format(*difference(own, other)) for other in others]
        lines.append(minus(f"| {name} | {' | '.join(cells)} |"))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a page that has a place for the table")
    options = parser.parse_args()
    if unknown := [name for name in options.sets if name not in SETS]:
        parser.error(f"no data set {unknown[0]!r}; there are {', '.join(SETS)}")
    if options.write and not PLACE.search(options.write.read_text()):
        parser.error(f"{options.write} has no place for the table: {PLACE.pattern}")
    warnings.simplefilter("ignore")  # the MLP's default of 200 epochs ends before it converges
    made = table(options.sets or SETS, options.splits)
    print(made, end="")
    if options.write:
        options.write.write_text(PLACE.sub(lambda found: found.group(1) + made + found.group(2), options.write.read_text()))


if __name__ == "__main__":
    main()
