#!/usr/bin/python3
"""Trains a saved workload with PyTorch. Prints one line of JSON.

All experts are batched, and inputs have no gradient. Optimizers are multi-tensor, and fused where the release has them.
Batches are views of an epoch that is permuted at once. `--compile` passes the loss through torch.compile.
"""

import json
import math

import numpy as np
import torch
from torch.nn.functional import mse_loss

import common

HAS_FUSED = int(torch.__version__.split(".")[0]) >= 2  # on processors, for Adam and SGD


def load(folder, name):
    return torch.from_numpy(np.load(folder / f"{name}.npy"))


class Constants:
    """f = softmax(x W^T) U."""

    def __init__(self, folder):
        self.router = load(folder, "router_weight").t().contiguous()
        self.experts = [load(folder, "expert_output")]

    def __call__(self, x):
        return torch.softmax(x @ self.router, 1) @ self.experts[0]


class OneOutput:
    """Linear experts with a single output: the whole bank is one product."""

    def __init__(self, folder):
        self.router = load(folder, "router_weight").t().contiguous()
        weight = load(folder, "expert_weight_1").squeeze(1).t().contiguous()
        self.experts = [weight, load(folder, "expert_bias_1").squeeze(1)]

    def __call__(self, x):
        weight, bias = self.experts
        outputs = torch.addmm(bias, x, weight)
        return (torch.softmax(x @ self.router, 1) * outputs).sum(1, keepdim=True)


class Networks:
    """Experts of any depth, one batched product a layer."""

    def __init__(self, folder, depth):
        self.router = load(folder, "router_weight").t().contiguous()
        self.experts = []
        for layer in range(1, depth + 1):
            self.experts.append(load(folder, f"expert_weight_{layer}").transpose(1, 2).contiguous())
            self.experts.append(load(folder, f"expert_bias_{layer}").unsqueeze(1))

    def __call__(self, x):
        gates = torch.softmax(x @ self.router, 1)
        hidden = x.expand(self.experts[0].shape[0], -1, -1)
        for at in range(0, len(self.experts), 2):
            hidden = torch.baddbmm(self.experts[at + 1], hidden, self.experts[at])
            if at + 2 < len(self.experts):
                hidden = hidden.relu_()
        return (gates.t().unsqueeze(2) * hidden).sum(0)


def make_model(folder, expert):
    if expert["kind"] == "constant":
        return Constants(folder)
    if expert["kind"] == "linear" and np.load(folder / "y.npy", mmap_mode="r").shape[1] == 1:
        return OneOutput(folder)
    return Networks(folder, expert.get("depth", 1))


def make_optimizer(model, trainable, train):
    for parameter in model.experts + ([model.router] if trainable else []):
        parameter.requires_grad_(True)
    groups = [{"params": model.experts, "lr": train["lr"]["expert"]}]
    if trainable:
        groups.append({"params": [model.router], "lr": train["lr"]["router"]})
    rule = train["optimizer"]
    # The multi-tensor form is the faster one where a group has many tensors, the plain form where it has one.
    many = len(model.experts) > 2
    form = {"fused": True} if HAS_FUSED else {"foreach": many}
    if rule["kind"] == "adam":
        return torch.optim.Adam(groups, lr=0, betas=(rule["beta1"], rule["beta2"]), eps=rule["epsilon"], **form)
    return torch.optim.SGD(groups, lr=0, momentum=rule["momentum"], **form)


def training_steps(loss, optimizer, x, y, batch):
    """Endless: one optimizer step each."""
    shuffled_x, shuffled_y = torch.empty_like(x), torch.empty_like(y)
    batches = list(zip(shuffled_x.split(batch), shuffled_y.split(batch)))
    # The loss sums over outputs and averages over rows.
    shares = [torch.tensor(1.0 / len(rows)) for rows, _ in batches]
    while True:
        order = torch.randperm(len(x))
        torch.index_select(x, 0, order, out=shuffled_x)
        torch.index_select(y, 0, order, out=shuffled_y)
        for (rows, targets), share in zip(batches, shares):
            optimizer.zero_grad(set_to_none=True)
            loss(rows, targets).backward(share)
            optimizer.step()
            yield


def nmse_over(model, x, y, batch):
    with torch.no_grad():
        error = sum(
            mse_loss(model(rows), targets, reduction="sum").item()
            for rows, targets in zip(x.split(batch), y.split(batch))
        )
        return error / (y - y.mean(0)).square().sum().item()


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    imported = common.peak_memory_mb()
    workload = common.settings(options.folder)
    train = workload["train"]
    batch = train["batch_size"]
    x, y = load(options.folder, "x"), load(options.folder, "y")
    model = make_model(options.folder, workload["expert"])
    optimizer = make_optimizer(model, workload["router_trainable"], train)

    def loss(rows, targets):
        return mse_loss(model(rows), targets, reduction="sum")

    steps = training_steps(torch.compile(loss) if options.compile else loss, optimizer, x, y, batch)
    program = "torch " + torch.__version__ + (", compiled" if options.compile else "")
    result = {"workload": workload["workload"], "program": program}
    result["openblas_core"] = common.openblas_core()
    result["first_batch_error"] = nmse_over(model, x[:batch], y[:batch], batch)
    if workload["to_target"]:
        result.update(
            common.measure_to_target(
                steps,
                lambda: nmse_over(model, x, y, batch),
                workload["target_nmse"],
                train["steps"],
                train["record_every"],
            )
        )
    else:
        next(steps)  # compiles
        result.update(common.measure_rate(steps, options.seconds))
    result["trained_batch_error"] = nmse_over(model, x[:batch], y[:batch], batch)
    if not math.isfinite(result["trained_batch_error"]):
        raise RuntimeError("the training diverged")
    result["peak_memory_mb"] = common.peak_memory_mb()
    result["peak_memory_after_import_mb"] = imported
    print(json.dumps(result))


main()
