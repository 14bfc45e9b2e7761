#!/usr/bin/python3
"""The whole study of a scenario with PyTorch: data, training, metrics, paired intervals and a figure.

    /usr/bin/time moelab run SCENARIO.json --threads 1
    /usr/bin/time study.py SCENARIO.json

Both take the settings from the scenario, so both answer the same questions. For Gaussian mixtures with constant
targets, networks as experts, and the arms learned, frozen, dense_small and dense_large. `--seeds` and `--steps` make
both shorter; give moelab the same with --set.
"""

import argparse
import json
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy import stats


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("study.svg"))
    return parser.parse_args()


class Data:
    def __init__(self, data, generator):
        clusters, dim, outputs = data["clusters"], data["dim"], data["target"]["dim"]
        self.means = data["mean_std"] * torch.randn(clusters, dim, generator=generator)
        self.targets = torch.randn(clusters, outputs, generator=generator)
        self.noise, self.generator = data["noise_std"], generator

    def draw(self, samples):
        cluster = torch.randint(len(self.means), (samples,), generator=self.generator)
        noise = torch.randn(samples, self.means.shape[1], generator=self.generator)
        return self.means[cluster] + self.noise * noise, self.targets[cluster], cluster


def layers_of(expert, dim, outputs, width, experts, generator):
    """Weights (E, in, out) and biases (E, 1, out) of each layer."""
    sizes = [dim] + [width] * (expert["depth"] - 1) + [outputs]
    layers = []
    for inward, outward in zip(sizes, sizes[1:]):
        scale = expert["init_scale"] * (2 / inward) ** 0.5
        layers.append(scale * torch.randn(experts, inward, outward, generator=generator))
        layers.append(torch.zeros(experts, 1, outward))
    return layers


def parameters_of(expert, dim, outputs, width):
    sizes = [dim] + [width] * (expert["depth"] - 1) + [outputs]
    return sum((inward + 1) * outward for inward, outward in zip(sizes, sizes[1:]))


class Model:
    def __init__(self, scenario, arm, generator):
        data, model, train = scenario["data"], scenario["model"], scenario["train"]
        expert, dim, outputs = model["expert"], data["dim"], data["target"]["dim"]
        self.is_dense = arm.startswith("dense")
        width, experts = expert["width"], 1 if self.is_dense else model["experts"]
        if arm == "dense_large":
            most = model["experts"] * (parameters_of(expert, dim, outputs, width) + dim)
            while parameters_of(expert, dim, outputs, width + 1) <= most:
                width += 1
        self.layers = layers_of(expert, dim, outputs, width, experts, generator)
        self.router = model["router"]["init_scale"] * torch.randn(dim, experts, generator=generator) / dim**0.5
        groups = [{"params": self.layers, "lr": train["lr"]["expert"]}]
        if arm == "learned":
            groups.append({"params": [self.router], "lr": train["lr"]["router"]})
        for group in groups:
            for parameter in group["params"]:
                parameter.requires_grad_(True)
        self.optimizer = torch.optim.SGD(groups, momentum=train["optimizer"]["momentum"], fused=True)

    def outputs(self, x):
        hidden = x.expand(len(self.layers[0]), -1, -1)
        for at in range(0, len(self.layers), 2):
            hidden = torch.baddbmm(self.layers[at + 1], hidden, self.layers[at])
            if at + 2 < len(self.layers):
                hidden = hidden.relu()
        return hidden

    def soft(self, x):
        if self.is_dense:
            return self.outputs(x)[0]
        return (torch.softmax(x @ self.router, 1).t().unsqueeze(2) * self.outputs(x)).sum(0)

    def top1(self, x):
        if self.is_dense:
            return self.outputs(x)[0]
        chosen = (x @ self.router).argmax(1)
        answer = torch.empty(len(x), self.layers[-1].shape[2])
        for expert in range(len(self.layers[0])):
            rows = (chosen == expert).nonzero()[:, 0]
            hidden = x[rows]
            for at in range(0, len(self.layers), 2):
                hidden = torch.addmm(self.layers[at + 1][expert], hidden, self.layers[at][expert])
                if at + 2 < len(self.layers):
                    hidden = hidden.relu()
            answer[rows] = hidden
        return answer


def normalised_error(predict, x, y):
    error = sum((predict(a) - b).square().sum().item() for a, b in zip(x.split(1000), y.split(1000)))
    return error / (y - y.mean(0)).square().sum().item()


def sparsity(router, x, cluster, experts):
    """The mean number of experts that the argmax chooses in a cluster, and its share."""
    chosen = (x @ router).argmax(1)
    return np.mean([len(chosen[cluster == c].unique()) / experts for c in cluster.unique()])


def run_cell(scenario, arm, samples, seed):
    data, train = scenario["data"], scenario["train"]
    generator = torch.Generator().manual_seed(1000 * seed + samples)
    problem = Data(data, generator)
    x, y, _ = problem.draw(samples)
    test_x, test_y, test_cluster = problem.draw(data["test_samples"])
    model = Model(scenario, arm, generator)
    records, step, batch = [], 0, train["batch_size"]
    while step < train["steps"]:
        order = torch.randperm(samples, generator=generator)
        for rows in order.split(batch):
            if step % train["record_every"] == 0:
                records.append(measured(model, x, y, test_x, test_y, test_cluster))
            model.optimizer.zero_grad(set_to_none=True)
            ((model.soft(x[rows]) - y[rows]).square().sum() / len(rows)).backward()
            model.optimizer.step()
            step += 1
            if step == train["steps"]:
                break
    records.append(measured(model, x, y, test_x, test_y, test_cluster))
    return records


@torch.no_grad()
def measured(model, x, y, test_x, test_y, test_cluster):
    found = {"train_soft": normalised_error(model.soft, x, y), "test_soft": normalised_error(model.soft, test_x, test_y),
             "test_top1": normalised_error(model.top1, test_x, test_y)}
    if not model.is_dense:
        found["sparsity"] = sparsity(model.router, test_x, test_cluster, len(model.layers[0]))
    return found


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    scenario = json.loads(options.scenario.read_text())
    if options.steps:
        scenario["train"]["record_every"] *= options.steps / scenario["train"]["steps"]
        scenario["train"]["steps"] = options.steps
    scenario["train"]["record_every"] = max(1, round(scenario["train"]["record_every"]))
    sizes = scenario["sweep"]["data.train_samples"]
    seeds = options.seeds or scenario["seeds"]["count"]
    begin = time.perf_counter()
    errors = {arm: np.array([[run_cell(scenario, arm, samples, seed)[-1]["test_top1"] for samples in sizes] for seed in range(seeds)])
              for arm in scenario["arms"]}
    for arm in errors:
        if arm == "learned" or seeds < 2:
            continue
        differences = np.log(errors["learned"]) - np.log(errors[arm])
        half = stats.t.ppf(0.975, seeds - 1) * differences.std(0, ddof=1) / seeds**0.5
        for samples, mean, width in zip(sizes, differences.mean(0), half):
            print(f"learned / {arm} at {samples}: {np.exp(mean):.3f} [{np.exp(mean - width):.3f}, {np.exp(mean + width):.3f}]")
    for arm, values in errors.items():
        plt.errorbar(sizes, values.mean(0), values.std(0), label=arm)
        print(arm, *(f"{value:.4f}" for value in values.mean(0)))
    plt.xscale("log")
    plt.legend()
    plt.savefig(options.out)
    print(f"{time.perf_counter() - begin:.1f} s without the imports, {len(errors) * len(sizes) * seeds} cells")


if __name__ == "__main__":
    main()
