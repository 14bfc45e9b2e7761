"""Measures the cost of a PyTorch router in moelab's training loop, relative to the same training in plain PyTorch.

    python bench/python_router.py [--steps 1000] [--rounds 3]

Both train a mixture of 32 experts with a router of two layers on the data of `start/learned_and_frozen`. Sizes,
optimizer, learning rate, batch and number of steps are the same. They run on one thread, in turns. The last column is
moelab's time divided by PyTorch's.
"""

import argparse
import statistics
import time

import torch

import moelab

EXPERTS, WIDTH, HIDDEN, BATCH, RATE = 32, 32, 64, 64, 0.003


def router(inputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, EXPERTS))


class Experts(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = torch.nn.Parameter(torch.randn(EXPERTS, inputs, WIDTH) * (2 / inputs) ** 0.5)
        self.first_bias = torch.nn.Parameter(torch.zeros(EXPERTS, 1, WIDTH))
        self.last = torch.nn.Parameter(torch.randn(EXPERTS, WIDTH, outputs) * (2 / WIDTH) ** 0.5)
        self.last_bias = torch.nn.Parameter(torch.zeros(EXPERTS, 1, outputs))

    def forward(self, x):
        hidden = torch.relu(torch.baddbmm(self.first_bias, x.expand(EXPERTS, *x.shape), self.first))
        return torch.baddbmm(self.last_bias, hidden, self.last)


def in_moelab(sample, steps):
    """The nMSE on the test set."""
    model = moelab.train(
        sample.x, sample.y,
        model={"experts": EXPERTS, "router": moelab.routers.torch(router(sample.x.shape[1])),
               "expert": {"kind": "mlp", "depth": 2, "width": WIDTH}, "gating": {"train": "soft", "eval": "soft"}},
        train={"optimizer": "adam", "lr": RATE, "batch_size": BATCH, "steps": steps, "record_every": steps},
    )
    return sample.measure(outputs_soft=model.predict(sample.test_x))["test_nmse_soft"]


def in_pytorch(sample, steps):
    """The nMSE on the test set."""
    data = sample.torch()
    routing, experts = router(data.x.shape[1]), Experts(data.x.shape[1], data.y.shape[1])
    optimizer = torch.optim.Adam([*routing.parameters(), *experts.parameters()], lr=RATE)

    def outputs(x):
        return torch.einsum("ne,eno->no", routing(x).softmax(-1), experts(x))

    for _ in range(steps):
        rows = torch.randint(len(data.x), (BATCH,))
        optimizer.zero_grad()
        (outputs(data.x[rows]) - data.y[rows]).square().sum(-1).mean().backward()
        optimizer.step()
    with torch.no_grad():
        return sample.measure(outputs_soft=outputs(data.test_x))["test_nmse_soft"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sample = moelab.sample(moelab.scenarios.load("start/learned_and_frozen"))
    sides = {"moelab": in_moelab, "PyTorch": in_pytorch}
    seconds, losses = {name: [] for name in sides}, {}
    for turn in range(options.rounds):
        for name in sides if turn % 2 == 0 else reversed(sides):
            torch.manual_seed(turn)
            begin = time.process_time()
            losses[name] = sides[name](sample, options.steps)
            seconds[name].append(time.process_time() - begin)
    print("| loop | ms a step, median | least and largest | test nMSE |")
    print("|---|---|---|---|")
    for name, own in seconds.items():
        steps = [1000 * value / options.steps for value in own]
        print(f"| {name} | {statistics.median(steps):.2f} | {min(steps):.2f} – {max(steps):.2f} | {losses[name]:.4f} |")
    ratios = [own / other for own, other in zip(seconds["moelab"], seconds["PyTorch"])]
    print(f"\nmoelab ÷ PyTorch: {statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})")


main()
