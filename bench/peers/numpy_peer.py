#!/usr/bin/python3
"""Trains workloads A and D with NumPy, written by hand. Prints one line of JSON. Set OPENBLAS_NUM_THREADS=1.

Gradients are in closed form. Arrays are float32 and allocated once. Experts are along the first axis, so that sums over
experts run over long rows.
"""

import json

import numpy as np

import common


class Adam:
    """Adam over one flat buffer, whose parts have their own rates. The moments are kept divided by 1 − β, which saves
    a pass over each; `views` and `gradient_views` are the parts as matrices."""

    def __init__(self, rule, parts, rates):
        sizes = np.cumsum([0] + [part.size for part in parts])
        self.parameters = np.concatenate([part.ravel() for part in parts])
        self.gradient = np.zeros_like(self.parameters)
        self.first = np.zeros_like(self.parameters)
        self.second = np.zeros_like(self.parameters)
        self.scratch = np.empty_like(self.parameters)
        cut = list(zip(parts, sizes, sizes[1:]))
        self.views = [self.parameters[begin:end].reshape(part.shape) for part, begin, end in cut]
        self.gradient_views = [self.gradient[begin:end].reshape(part.shape) for part, begin, end in cut]
        self.rates = [(rate, self.scratch[begin:end]) for rate, (_, begin, end) in zip(rates, cut)]
        if len(set(rates)) == 1:
            self.rates = [(rates[0], self.scratch)]
        self.beta1, self.beta2, self.epsilon = rule["beta1"], rule["beta2"], rule["epsilon"]
        self.power1 = self.power2 = 1.0

    def step(self):
        self.power1 *= self.beta1
        self.power2 *= self.beta2
        scratch = self.scratch
        np.multiply(self.first, self.beta1, out=self.first)
        np.add(self.first, self.gradient, out=self.first)
        np.multiply(self.second, self.beta2, out=self.second)
        np.multiply(self.gradient, self.gradient, out=scratch)
        np.add(self.second, scratch, out=self.second)
        root = ((1 - self.beta2) / (1 - self.power2)) ** 0.5
        np.sqrt(self.second, out=scratch)
        np.add(scratch, self.epsilon / root, out=scratch)
        np.divide(self.first, scratch, out=scratch)
        size = (1 - self.beta1) / (1 - self.power1) / root
        for rate, part in self.rates:
            np.multiply(part, rate * size, out=part)
        np.subtract(self.parameters, scratch, out=self.parameters)


def softmax_columns(scores, sums):
    np.maximum.reduce(scores, axis=0, out=sums)
    np.subtract(scores, sums, out=scores)
    np.exp(scores, out=scores)
    np.add.reduce(scores, axis=0, out=sums)
    np.divide(scores, sums, out=scores)


class Constants:
    """A: r = softmax(W x^T) (E, n), f = r^T U (n, o)."""

    def __init__(self, folder, train, rows, output_dim):
        router, constants = np.load(folder / "router_weight.npy"), np.load(folder / "expert_output.npy")
        rates = [train["lr"]["router"], train["lr"]["expert"]]
        self.adam = Adam(train["optimizer"], [router, constants], rates)
        experts = len(router)
        self.gates = np.empty((experts, rows), np.float32)
        self.gate_gradient = np.empty((experts, rows), np.float32)
        self.outputs = np.empty((rows, output_dim), np.float32)
        self.residuals = np.empty((rows, output_dim), np.float32)
        self.sums = np.empty(rows, np.float32)

    def prepare(self, x):
        return x

    def forward(self, x):
        router, constants = self.adam.views
        np.matmul(router, x.T, out=self.gates)
        softmax_columns(self.gates, self.sums)
        np.matmul(self.gates.T, constants, out=self.outputs)
        return self.outputs

    def step(self, x, y):
        constants = self.adam.views[1]
        router_gradient, constants_gradient = self.adam.gradient_views
        np.subtract(self.forward(x), y, out=self.residuals)
        np.multiply(self.residuals, 2.0 / len(x), out=self.residuals)
        np.matmul(self.gates, self.residuals, out=constants_gradient)
        # ∂L/∂scores = r ∘ (g − Σ_e r_e g_e), and the sum is the output times its own gradient.
        np.matmul(constants, self.residuals.T, out=self.gate_gradient)
        np.einsum("ij,ij->i", self.outputs, self.residuals, out=self.sums)
        np.subtract(self.gate_gradient, self.sums, out=self.gate_gradient)
        np.multiply(self.gate_gradient, self.gates, out=self.gate_gradient)
        np.matmul(self.gate_gradient, x, out=router_gradient)
        self.adam.step()


class OneOutput:
    """D: scores and expert outputs are one product with the inputs, to which a column of ones is added for the biases;
    the router's entries of that column stay zero."""

    def __init__(self, folder, train, rows, output_dim):
        assert output_dim == 1 and train["lr"]["router"] == train["lr"]["expert"]
        router = np.load(folder / "router_weight.npy")
        weight, bias = np.load(folder / "expert_weight_1.npy")[:, 0], np.load(folder / "expert_bias_1.npy")
        self.experts = len(router)
        joined = np.vstack([np.hstack([router, np.zeros_like(bias)]), np.hstack([weight, bias])])
        self.adam = Adam(train["optimizer"], [joined], [train["lr"]["router"]])
        self.scores = np.empty((2 * self.experts, rows), np.float32)
        self.score_gradient = np.empty_like(self.scores)
        self.sums = np.empty(rows, np.float32)
        self.outputs = np.empty(rows, np.float32)
        self.residuals = np.empty(rows, np.float32)

    def prepare(self, x):
        return np.hstack([x, np.ones((len(x), 1), np.float32)])

    def forward(self, x):
        np.matmul(self.adam.views[0], x.T, out=self.scores)
        gates, outputs = self.scores[: self.experts], self.scores[self.experts :]
        softmax_columns(gates, self.sums)
        np.einsum("ij,ij->j", gates, outputs, out=self.outputs)
        return self.outputs[:, None]

    def step(self, x, y):
        gradient = self.adam.gradient_views[0]
        np.subtract(self.forward(x)[:, 0], y[:, 0], out=self.residuals)
        np.multiply(self.residuals, 2.0 / len(x), out=self.residuals)
        gates, outputs = self.scores[: self.experts], self.scores[self.experts :]
        gate_part, output_part = self.score_gradient[: self.experts], self.score_gradient[self.experts :]
        np.multiply(gates, self.residuals, out=output_part)
        np.subtract(outputs, self.outputs, out=gate_part)
        np.multiply(gate_part, output_part, out=gate_part)
        np.matmul(self.score_gradient, x, out=gradient)
        gradient[: self.experts, -1] = 0
        self.adam.step()


def training_steps(model, x, y, batch):
    """Endless: one optimizer step each. The training set is a whole number of batches."""
    shuffled_x, shuffled_y = np.empty_like(x), np.empty_like(y)
    random = np.random.default_rng(1)
    order = np.arange(len(x))
    batches = [(shuffled_x[at : at + batch], shuffled_y[at : at + batch]) for at in range(0, len(x), batch)]
    while True:
        random.shuffle(order)
        np.take(x, order, axis=0, out=shuffled_x, mode="clip")
        np.take(y, order, axis=0, out=shuffled_y, mode="clip")
        for rows, targets in batches:
            model.step(rows, targets)
            yield


def main():
    options = common.arguments(__doc__)
    workload = common.settings(options.folder)
    train = workload["train"]
    x, y = np.load(options.folder / "x.npy"), np.load(options.folder / "y.npy")
    batch = train["batch_size"]
    assert len(x) % batch == 0
    kind = {"constant": Constants, "linear": OneOutput}[workload["expert"]["kind"]]
    model = kind(options.folder, train, batch, y.shape[1])
    x = model.prepare(x)

    def nmse():
        targets = y[:batch]
        return float(((model.forward(x[:batch]) - targets) ** 2).sum() / ((targets - targets.mean(0)) ** 2).sum())

    result = {"workload": workload["workload"], "program": "numpy " + np.__version__, "first_batch_error": nmse()}
    result["openblas_core"] = common.openblas_core()
    result.update(common.measure_rate(training_steps(model, x, y, batch), options.seconds))
    result["trained_batch_error"] = nmse()
    result["peak_memory_mb"] = common.peak_memory_mb()
    print(json.dumps(result))


main()
