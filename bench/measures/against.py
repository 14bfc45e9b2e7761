"""Compares a result with a stored one. Machines differ, so speeds are ratios to the FMA peak of the same minute."""

import json
import statistics

SLOWDOWN = 0.05


def stored(records):
    """{workload: [steps of a second for each GFLOP/s of the peak, one a round]}, moelab's."""
    return {name: [run["steps_per_second"] / run["peak_gflops"] for run in runs["moelab"]] for name, runs in records.items()}


def compare(path, now):
    """A table, and the workloads that are slower by 5 % and more."""
    before = json.loads(path.read_text())
    lines = ["", f"Beside {path.name}, steps for each GFLOP/s of the peak, medians:", "",
             "| workload | before | now | now ÷ before | least and largest of the rounds |", "|---|---|---|---|---|"]
    slower = []
    for name in [name for name in now if name in before]:
        old = statistics.median(before[name])
        ratios = [value / old for value in now[name]]
        ratio = statistics.median(ratios)
        lines.append(f"| {name} | {old:.3g} | {statistics.median(now[name]):.3g} | {ratio:.3f} | "
                     f"{min(ratios):.3f} – {max(ratios):.3f} |")
        if ratio < 1 - SLOWDOWN:
            slower.append(f"{name} ({1 - ratio:.0%})")
    lines += ["", "Slower by 5 % and more: " + (", ".join(slower) if slower else "none") + "."]
    return lines, slower
