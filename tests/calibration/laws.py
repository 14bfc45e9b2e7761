"""The laws of the noise. Each has mean 0 and variance 1."""

import math

SEEDS = (3, 5, 10, 40)

_LOG_NORMAL_MEAN = math.exp(0.5)
_LOG_NORMAL_DEVIATION = math.sqrt((math.e - 1) * math.e)


def _normal(rng):
    return rng.gauss(0, 1)


def _log_normal(rng):
    return (math.exp(rng.gauss(0, 1)) - _LOG_NORMAL_MEAN) / _LOG_NORMAL_DEVIATION


def _exponential(rng):
    return rng.expovariate(1) - 1


def _student(rng):
    chi_squared = sum(rng.gauss(0, 1) ** 2 for _ in range(3))
    return rng.gauss(0, 1) / math.sqrt(chi_squared / 3) / math.sqrt(3)


def _bounded(rng):
    return math.sqrt(3) * (2 * rng.random() - 1)


def _rare_failures(rng):
    """One run of ten is 10 standard deviations above the others. Mean 1 and variance 10 before scaling."""
    value = rng.gauss(0, 1) + (10 if rng.random() < 0.1 else 0)
    return (value - 1) / math.sqrt(10)


LAWS = {
    "normal": _normal,
    "log-normal": _log_normal,
    "exponential": _exponential,
    "t(3)": _student,
    "uniform": _bounded,
    "rare failures": _rare_failures,
}
