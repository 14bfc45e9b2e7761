"""T: the parts of a language model, each alone."""

import statistics

from measures.common import median
from measures.trainings import bound_seconds


def part_bound(bench, part, peak_gflops):
    """The least microseconds of a call; bytes at the speed at which a processor copies as many."""
    gigabytes = bench.copied(part["bytes"] / 1e6)["copied_gigabytes"]
    needs = {"mflop_per_step": part["operations"] / 1e6, "exponentials": part["exponentials"], "bytes": part["bytes"]}
    return 1e6 * bound_seconds(dict(needs, peak_gflops=peak_gflops), gigabytes)


def measure_token_parts(bench):
    """Divides parts by the step of the same round: both are measured within one minute."""
    plan = {"parts": lambda: bench.answer([bench.build / "bench" / "moelab_token_parts"]), "step": lambda: bench.workload("L")}
    peaks, rounds = [], []
    for turn in range(bench.options.rounds):
        peaks.append(bench.peak())
        rounds.append({name: plan[name]() for name in (plan if turn % 2 == 0 else reversed(plan))})
    steps = [1e6 * answers["step"]["processor_seconds"] / answers["step"]["steps"] for answers in rounds]
    lines = ["", f"T, processor time of parts of a step of L, forward and backward, one thread:", "",
             "| part | µs | bound, µs | share of the bound | calls in a step | µs of a step | share of the step |",
             "|---|---|---|---|---|---|---|"]
    totals = [0.0] * len(rounds)
    for place, part in enumerate(rounds[0]["parts"]["parts"]):
        of_rounds = [answers["parts"]["parts"][place] for answers in rounds]
        microseconds, calls = median(of_rounds, "microseconds"), part["calls_per_step"]
        bound = part_bound(bench, part, median(peaks, "peak_gflops"))
        shares = [calls * own["microseconds"] / step for own, step in zip(of_rounds, steps)]
        totals = [total + share for total, share in zip(totals, shares)]
        cells = [part["part"], f"{microseconds:,.0f}", f"{bound:,.0f}", f"{bound / microseconds:.0%}", str(calls)]
        cells += [f"{calls * microseconds:,.0f}", f"{statistics.median(shares):.0%}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + ["", f"Together they are {statistics.median(totals):.0%} of a step of {statistics.median(steps):,.0f} µs."]
