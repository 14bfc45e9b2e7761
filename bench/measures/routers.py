"""H, I and J: the cost of a router relative to a plain one, and the cost of a formula."""

import statistics

STACKS = {"": "d 24, experts of width 32", "_wide": "d 128, experts of width 512"}


def step_times(bench, names):
    """Processor time of a step of each workload in each round, in µs. It resolves a few percent."""
    steps = {name: [] for name in names}
    for turn in range(bench.options.rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            run = bench.workload(name)
            steps[name].append(1e6 * run["processor_seconds"] / run["steps"])
    return list(steps.values())


def ratio_cells(plain, other):
    ratios = [own / base for own, base in zip(other, plain)]
    return [f"{statistics.median(plain):,.0f}", f"{statistics.median(other):,.0f}",
            f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f} – {max(ratios):.3f}"]


def table(workload, title, columns, rows):
    columns += ["ratio, median of rounds", "least and largest"]
    lines = ["", f"{workload}, processor time of a step of {title}:", "", "| " + " | ".join(columns) + " |"]
    return lines + ["|" + "---|" * len(columns)] + ["| " + " | ".join(row) + " |" for row in rows]


def router_lines(bench, workload, title, routers):
    rows = []
    for ending, size in STACKS.items():
        names = [f"{workload}_{router}{ending}" for router in ["plain"] + list(routers)]
        plain, *others = step_times(bench, names)
        rows += [[size, router] + ratio_cells(plain, own) for own, router in zip(others, routers.values())]
    return table(workload, title, ["", "router", "plain router, µs", "this one, µs"], rows)


def measure_clustering(bench):
    return router_lines(bench, "H", "two layers of 16 experts, top-2, batch 256", {"adaptive": "adaptive clustering"})


def measure_mixing(bench):
    return router_lines(bench, "I", "attention and 16 experts, top-2, 16 sequences of 32 tokens",
                        {"similarity": "similarity-aware", "attention": "attention-aware"})


def measure_formulas(bench):
    rows = []
    for router in ["linear", "cosine", "perturbed_cosine", "squared_distance"]:
        rows.append([f"`{router}`"] + ratio_cells(*step_times(bench, [f"J_{router}", f"J_{router}_formula"])))
    return table("J", "A behind routers of the program and the same as formulas",
                 ["router", "the program's, µs", "as a formula, µs"], rows)
