"""H and I: what a router costs beside a plain one."""

import statistics

STACKS = {"": "d 24, experts of width 32", "_wide": "d 128, experts of width 512"}


def router_lines(bench, workload, title, routers):
    """What routers cost beside a plain one, in processor time, which a few percent can be told apart in."""
    lines = ["", f"{workload}, processor time of a step of {title}:", ""]
    lines += ["| | router | plain router, µs | this one, µs | ratio, median of rounds | least and largest |"]
    lines += ["|---|---|---|---|---|---|"]
    for ending, size in STACKS.items():
        names = [f"{workload}_{router}{ending}" for router in ["plain"] + list(routers)]
        steps = {name: [] for name in names}
        for turn in range(bench.options.rounds):
            for name in names if turn % 2 == 0 else reversed(names):
                run = bench.workload(name)
                steps[name].append(1e6 * run["processor_seconds"] / run["steps"])
        plain = steps.pop(names[0])
        for values, router in zip(steps.values(), routers.values()):
            ratios = [own / base for own, base in zip(values, plain)]
            cells = [size, router, f"{statistics.median(plain):,.0f}", f"{statistics.median(values):,.0f}"]
            cells += [f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f} – {max(ratios):.3f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def measure_clustering(bench):
    return router_lines(bench, "H", "two layers of 16 experts, top-2, batch 256", {"adaptive": "adaptive clustering"})


def measure_mixing(bench):
    return router_lines(bench, "I", "attention and 16 experts, top-2, 16 sequences of 32 tokens",
                        {"similarity": "similarity-aware", "attention": "attention-aware"})
