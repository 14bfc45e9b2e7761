"""G: how a step grows with the sizes."""

from measures.common import median

GROWTH_SECONDS = 0.5
GROWTH = {
    "E, constant experts": ("A", "--experts", [16, 64, 256, 1024, 4096]),
    "E, constant experts, top-2": ("K", "--experts", [16, 64, 1024, 16384, 65536]),
    "E, MLP experts behind a specialised router": ("S", "--experts", [16, 64, 256, 1024, 4096]),
    "d, constant experts": ("A", "--dim", [12, 24, 48, 96, 192]),
    "batch, constant experts": ("A", "--batch", [64, 128, 256, 512, 1024]),
    "n, constant experts": ("A", "--samples", [2560, 10240, 40960, 163840]),
}


def measure_growth(bench):
    runs = {}
    for _ in range(bench.options.rounds):
        for title, (name, option, values) in GROWTH.items():
            for value in values:
                run = bench.workload(name, option, str(value), seconds=GROWTH_SECONDS)
                runs.setdefault((title, value), []).append(run)
    lines = ["", "G, growth, one thread:", ""]
    lines.append("| against | value | step, µs | router's product, µs | step without it, µs | its softmax, µs "
                 "| active experts a row | a batch | peak MB | needed MB |")
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    outside = {}
    for (title, value), records in runs.items():
        step = 1e6 / median(records, "steps_per_second")
        product = median(records, "router_product_microseconds")
        outside[title, value] = step - product
        numbers = [step, product, step - product, median(records, "router_softmax_microseconds")]
        cells = [title, str(value)] + [f"{number:,.1f}" for number in numbers]
        cells += [f"{median(records, 'active_experts_per_row'):.1f}", f"{median(records, 'active_experts_per_batch'):.0f}"]
        cells += [f"{median(records, key):.0f}" for key in ["peak_memory_mb", "needed_memory_mb"]]
        lines.append("| " + " | ".join(cells) + " |")
    special = "E, MLP experts behind a specialised router"
    ratio = outside[special, 4096] / outside[special, 256]
    lines += ["", f"Behind a specialised router, a step outside the router's product takes {ratio:.1f} times as long at "
              "E = 4096 as at E = 256."]
    return lines
