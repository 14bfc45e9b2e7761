#!/usr/bin/env python3
"""Trains a saved language model (workload L) with PyTorch 2 on one thread. Prints one line of JSON.

`--style user` writes the mixture as its users do: a loop over experts that gathers the rows of each. `--style expert`
sorts the rows by expert once, so that an expert's rows are a slice. `--compile` passes the model through torch.compile.
"""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F

import common


class Mixture:
    """Σ_{i of the top 2} g_i f_i(x), gates renormalised."""

    def __init__(self, arrays, ending, style):
        self.router = arrays[f"router_weight{ending}"]
        self.weights = [arrays[f"expert_{name}{ending}"] for name in ["weight_1", "bias_1", "weight_2", "bias_2"]]
        self.apply = self.by_experts if style == "user" else self.by_sorted_rows

    def __call__(self, x):
        rows = x.flatten(0, -2)
        top, chosen = F.linear(rows, self.router).softmax(-1).topk(2, -1)
        return self.apply(rows, top / top.sum(-1, keepdim=True), chosen).view_as(x)

    def of_expert(self, expert, rows):
        first, first_bias, second, second_bias = (weight[expert] for weight in self.weights)
        return F.linear(F.relu(F.linear(rows, first, first_bias)), second, second_bias)

    def by_experts(self, rows, gates, chosen):
        result = torch.zeros_like(rows)
        for expert in range(len(self.router)):
            row, place = torch.where(chosen == expert)
            result.index_add_(0, row, gates[row, place, None] * self.of_expert(expert, rows[row]))
        return result

    def by_sorted_rows(self, rows, gates, chosen):
        order = chosen.flatten().argsort()
        row = order // 2
        counts = chosen.flatten().bincount(minlength=len(self.router)).tolist()
        first, first_bias, second, second_bias = (weight.unbind() for weight in self.weights)
        outputs = [
            F.linear(F.relu(F.linear(own, first[e], first_bias[e])), second[e], second_bias[e])
            for e, own in enumerate(rows[row].split(counts))
        ]
        weighted = torch.cat(outputs) * gates.flatten()[order, None]
        return torch.zeros_like(rows).index_add(0, row, weighted)


class Transformer:
    def __init__(self, arrays, model, style):
        self.arrays, self.heads, self.layers = arrays, model["heads"], model["layers"]
        self.mixtures = [Mixture(arrays, f"_layer{layer}", style) for layer in range(self.layers)]

    def norm(self, x, prefix, ending=""):
        gain, bias = (self.arrays[f"{prefix}norm_{name}{ending}"] for name in ["gain", "bias"])
        return F.layer_norm(x, x.shape[-1:], gain, bias, eps=1e-5)

    def attended(self, x, prefix):
        def heads(name):
            return F.linear(x, self.arrays[prefix + name]).unflatten(2, (self.heads, -1)).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(heads("query"), heads("key"), heads("value"), is_causal=True)
        return F.linear(mixed.transpose(1, 2).flatten(2), self.arrays[prefix + "output"])

    def __call__(self, ids):
        h = F.embedding(ids, self.arrays["embedding_token"]) + self.arrays["embedding_position"]
        for layer, mixture in enumerate(self.mixtures):
            prefix = f"block{layer}_attention_"
            h = h + self.attended(self.norm(h, prefix), prefix)
            h = h + mixture(self.norm(h, "", f"_layer{layer}"))
        h = self.norm(h, "readout_")
        return F.linear(h, self.arrays["readout_weight_1"], self.arrays["readout_bias_1"])


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--style", choices=["user", "expert"], default="expert")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    workload = common.settings(options.folder)
    train = workload["train"]
    arrays = {
        file.stem: torch.from_numpy(np.load(file)).requires_grad_()
        for file in options.folder.glob("*.npy")
        if file.stem not in ["x", "y"]
    }
    x, y = (torch.from_numpy(np.load(options.folder / f"{name}.npy")).long() for name in ["x", "y"])
    model = Transformer(arrays, workload["model"], options.style)
    forward = torch.compile(model) if options.compile else model
    rule = train["optimizer"]
    optimizer = torch.optim.AdamW(
        arrays.values(), lr=train["lr"]["expert"], betas=(rule["beta1"], rule["beta2"]), eps=rule["epsilon"],
        weight_decay=train["weight_decay"], fused=True
    )
    batch = train["batch_size"]

    def loss_of(ids, targets):
        return F.cross_entropy(forward(ids).flatten(0, 1), targets.flatten())

    def training_steps():
        while True:
            order = torch.randperm(len(x))
            for rows in order.split(batch):
                optimizer.zero_grad(set_to_none=True)
                loss_of(x[rows], y[rows]).backward()
                optimizer.step()
                yield

    def first_batch_error():
        with torch.no_grad():
            return loss_of(x[:batch], y[:batch]).item()

    name = f"torch {torch.__version__}, {options.style}" + (", compiled" if options.compile else "")
    result = {"workload": workload["workload"], "program": name, "first_batch_error": first_batch_error()}
    steps = training_steps()
    next(steps)  # compiles the way back
    result.update(common.measure_rate(steps, options.seconds))
    result["tokens_per_second"] = result["steps_per_second"] * batch * x.shape[1]
    result["trained_batch_error"] = first_batch_error()
    if not math.isfinite(result["trained_batch_error"]):
        raise RuntimeError("the training diverged")
    result["peak_memory_mb"] = common.peak_memory_mb()
    print(json.dumps(result))


main()
