"""How often a confidence sequence of analysis/stats/intervals.h ever misses the truth, and how many values it takes to
decide, computed apart from the program, in NumPy.

    python3 tests/analysis/stats/sequences.py [--runs 10000] [--most 1000]

A run draws up to `--most` differences and is looked at after every one from the sixth on. It misses where the interval
of level 0.95 leaves out the true mean (t-mixture) or median (signs) at any look. Numbers of values are those until the
t-mixture excludes 0 for normal differences of mean `effect` standard deviations, beside the n at which the fixed
two-sided t-test of level 0.05 has a power of 0.9. Prints Markdown tables.
"""

import argparse

import numpy as np
from scipy import stats

LEAST = 6
LEVEL = 0.05


def t_mixture_excludes(values, truth):
    """(runs, looks): whether B ≥ 1/α after each value from the sixth on."""
    n = np.arange(1, values.shape[1] + 1)
    mean = values.cumsum(1) / n
    squares = (values**2).cumsum(1) - n * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.sqrt(n) * (mean - truth) / np.sqrt(squares / (n - 1))
        log_ratio = -0.5 * np.log(1 + n) + n / 2 * (
            np.log1p(t**2 / (n - 1)) - np.log1p(t**2 / ((n + 1) * (n - 1))))
    return log_ratio[:, LEAST - 1:] >= np.log(1 / LEVEL)


def signs_exclude(values, truth):
    n = np.arange(1, values.shape[1] + 1)
    above = (values > truth).cumsum(1)
    from scipy.special import betaln

    log_ratio = n * np.log(2) + betaln(above + 0.5, n - above + 0.5) - betaln(0.5, 0.5)
    return log_ratio[:, LEAST - 1:] >= np.log(1 / LEVEL)


# Draws (runs, most), the mean and the median.
LAWS = {
    "normal": (lambda random, shape: random.normal(size=shape), 0, 0),
    "log-normal, σ 1": (lambda random, shape: np.exp(random.normal(size=shape)), np.exp(0.5), 1),
    "exponential": (lambda random, shape: random.exponential(size=shape), 1, np.log(2)),
    "Student's t, 3 degrees": (lambda random, shape: random.standard_t(3, size=shape), 0, 0),
    "Cauchy": (lambda random, shape: random.standard_cauchy(size=shape), None, 0),
    "two humps, ±3 ± .5": (
        lambda random, shape: np.where(random.random(shape) < 0.5, -3, 3) + 0.5 * random.normal(size=shape), 0, 0),
}


def misses(law, runs, most, random):
    draw, mean, median = LAWS[law]
    of_mean = of_median = 0
    for _ in range(0, runs, 500):
        values = draw(random, (500, most))
        if mean is not None:
            of_mean += t_mixture_excludes(values, mean).any(1).sum()
        of_median += signs_exclude(values, median).any(1).sum()
    return (None if mean is None else of_mean / runs), of_median / runs


def values_needed(effect, runs, most, random):
    needed = []
    for _ in range(0, runs, 500):
        excluded = t_mixture_excludes(effect + random.normal(size=(500, most)), 0)
        needed.append(np.where(excluded.any(1), excluded.argmax(1) + LEAST, most + 1))
    return np.concatenate(needed)


def fixed_number(effect, power=0.9):
    for n in range(2, 10**6):
        edge = stats.t.ppf(1 - LEVEL / 2, n - 1)
        if stats.nct.sf(edge, n - 1, effect * np.sqrt(n)) >= power:
            return n
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10000, help="a multiple of 500")
    parser.add_argument("--most", type=int, default=1000)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    print("| law of the differences | t-mixture ever misses the mean | signs ever miss the median |\n|---|---|---|")
    for law in LAWS:
        of_mean, of_median = misses(law, options.runs, options.most, random)
        print(f"| {law} | {'no mean' if of_mean is None else f'{100 * of_mean:.2f} %'} | {100 * of_median:.2f} % |")
    print("\n| effect, standard deviations | fixed n for a power of 0.9 | values of the sequence: mean | 90 % of runs have decided |")
    print("|---|---|---|---|")
    for effect in (0.2, 0.3, 0.5, 1.0, 2.0):
        needed = values_needed(effect, options.runs, options.most, random)
        print(f"| {effect:g} | {fixed_number(effect)} | {needed.mean():.1f} | {int(np.quantile(needed, 0.9))} |")


if __name__ == "__main__":
    main()
