"""A simulation of rate intervals with NumPy, without the program: weighted and plain least squares."""

TRIALS = 4000


def _slopes(logs, errors, weighted):
    import numpy as np
    variances = errors.var(axis=1, ddof=1)
    weights = 2 / (variances + variances.mean(axis=1, keepdims=True)) if weighted else np.ones_like(variances)
    weights = weights / weights.sum(axis=1, keepdims=True)
    centred = logs - (weights * logs).sum(axis=1, keepdims=True)
    spread = (weights * centred**2).sum(axis=1, keepdims=True)
    return np.einsum("ts,trs->tr", weights * centred / spread, errors)


def coverage(repetitions, sizes, law, weighted, trials):
    """The share of 95 % intervals of the mean slope that hold the true slope 0."""
    import numpy as np
    from scipy import stats
    rng = np.random.default_rng(7)
    logs = np.arange(sizes, dtype=float)
    errors = rng.normal(size=(trials, repetitions, sizes))
    if law != "normal":
        spread = 0.2 * 4 ** (np.arange(sizes) / (sizes - 1))
        errors = spread * (rng.exponential(size=errors.shape) - 1)
    slopes = _slopes(logs, errors, weighted)
    half = stats.t.ppf(0.975, repetitions - 1) * slopes.std(axis=1, ddof=1) / np.sqrt(repetitions)
    return float((np.abs(slopes.mean(axis=1)) <= half).mean())


def reference(scale):
    """The table as JSON; none without NumPy and SciPy."""
    try:
        import numpy  # noqa: F401
        import scipy  # noqa: F401
    except ImportError:
        return None
    trials = max(200, round(TRIALS * scale))
    return {"trials": trials,
            "rows": [{"repetitions": repetitions, "sizes": 11, "law": law,
                      "weighted": coverage(repetitions, 11, law, True, trials),
                      "plain": coverage(repetitions, 11, law, False, trials)}
                     for repetitions in (5, 8, 40) for law in ("normal", "exponential, unequal")]}
