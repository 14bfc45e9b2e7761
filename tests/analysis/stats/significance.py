"""The reference values of significance_test.cpp, by SciPy: python3 tests/analysis/stats/significance.py"""

import numpy as np
from scipy import stats

VALUES = [-0.31, -0.12, -0.45, 0.08, -0.27]
RANGES = [(-np.inf, 0), (0, np.inf), (-0.1, 0.1), (-0.6, 0.3)]
P_VALUES = [0.01, 0.04, 0.03, 0.005, 0.5, 0.04]


def one_sided(edge, alternative):
    if np.isinf(edge):
        return float((alternative == "less") == (edge < 0))
    return stats.ttest_1samp(VALUES, edge, alternative=alternative).pvalue


def holm(p_values):
    order = np.argsort(p_values, kind="stable")
    steps = (len(p_values) - np.arange(len(p_values))) * np.array(p_values)[order]
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1, np.maximum.accumulate(steps))
    return corrected


for low, high in RANGES:
    inside = 2 * max(one_sided(high, "less"), one_sided(low, "greater"))
    outside = 2 * min(one_sided(high, "greater"), one_sided(low, "less"))
    print(f"range {low} {high}: inside {min(1, inside):.10g} outside {min(1, outside):.10g}")
print(f"two-sided t: {stats.ttest_1samp(VALUES, 0).pvalue:.10g}")
for count, decidable in [(6, 6), (5, 5), (8, 10), (2, 10), (5, 10)]:
    p = min(1, 2 * stats.binom.sf(count - 1, decidable, 0.5))
    print(f"sign {count} of {decidable}: {p:.10g}")
print("binomtest 8 of 10:", f"{stats.binomtest(8, 10).pvalue:.10g}")
print("holm", [float(f"{p:.10g}") for p in holm(P_VALUES)])
print("bh", [float(f"{p:.10g}") for p in stats.false_discovery_control(P_VALUES)])
for mean, deviation, edge in [(-0.1, 0.5, 0), (-0.02, 0.2, 0.05)]:
    seeds = 3
    while stats.t.ppf(0.975, seeds - 1) * deviation / np.sqrt(seeds) >= abs(abs(mean) - edge):
        seeds += 1
    print(f"seeds for mean {mean}, s {deviation}, edge {edge}: {seeds}")
