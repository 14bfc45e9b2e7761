"""Writes reference.inc: metrics computed with NumPy, independently of the C++ code.

Run `python3 reference.py` in this folder; needs NumPy and scikit-learn.
"""

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

rng = np.random.default_rng(20230713)
rows, experts, outputs, width, signal = 37, 5, 3, 8, 3

logits = rng.normal(size=(rows, experts)) * 2
probabilities = np.exp(logits)
probabilities /= probabilities.sum(axis=1, keepdims=True)
labels = rng.choice([0, 1, 4, 9], size=rows)  # labels 2, 3, … are empty clusters
predictions = rng.normal(size=(rows, outputs))
targets = rng.normal(size=(rows, outputs)) * [1, 2, 0.5] + [10, -3, 0]
weight = rng.normal(size=(experts, width))
basis = np.linalg.qr(rng.normal(size=(width, signal)))[0]

entropies, concentration = [], []
top1 = probabilities.argmax(axis=1)
for cluster in np.unique(labels):
    mean = probabilities[labels == cluster].mean(axis=0)
    entropies.append(-(mean * np.log(mean)).sum())
    concentration.append(np.bincount(top1[labels == cluster], minlength=experts).max() / (labels == cluster).sum())
table = np.zeros((10, experts))
np.add.at(table, (labels, top1), 1)
norms = np.linalg.norm(weight, axis=1)
loads = np.bincount(top1, minlength=experts)
variance = targets.var(axis=0).mean()
log_softmax = predictions - np.log(np.exp(predictions).sum(axis=1, keepdims=True))
classes = np.eye(outputs)[targets.argmin(axis=1)]
shares = np.exp(log_softmax[::-1])  # probabilities that are no indicators
loss = np.mean((predictions - targets) ** 2)

expected = {
    "cluster_entropy": np.mean(entropies),
    "effective_experts": np.mean(np.exp(entropies)),
    "purity": table.max(axis=0).sum() / rows,
    "concentration": np.mean(concentration),
    "ari": np.float64(adjusted_rand_score(labels, top1)),
    "nmi": np.float64(normalized_mutual_info_score(labels, top1)),
    "loss": loss,
    "variance": variance,
    "nmse": loss / variance,
    "cross_entropy": -np.mean(log_softmax[np.arange(rows), targets.argmin(axis=1)]),
    "shared_cross_entropy": -(shares * log_softmax).sum() / rows,
    "right_share": np.mean(predictions.argmax(axis=1) == targets.argmin(axis=1)),
    "norm_ratio": np.mean(norms**2) / norms.mean() ** 2,
    "signal_fraction": np.linalg.norm(weight @ basis) ** 2 / np.linalg.norm(weight) ** 2,
    "max_violation": (loads.max() - loads.mean()) / loads.mean(),
    "std_percent": np.std(100 * loads / rows),
}


def text(values):
    return ", ".join(repr(value.item()) for value in np.asarray(values).ravel())


with open("reference.inc", "w", encoding="utf-8") as file:
    file.write("// Written by reference.py.\n// clang-format off\n")
    sizes = dict(rows=rows, experts=experts, outputs=outputs, width=width, signal=signal)
    for name, value in sizes.items():
        file.write(f"constexpr int {name} = {value};\n")
    for name in ("probabilities", "predictions", "targets", "classes", "shares", "weight", "basis"):
        file.write(f"const std::vector<double> {name} = {{{text(globals()[name])}}};\n")
    file.write(f"const std::vector<int> labels = {{{text(labels)}}};\n")
    for name, value in expected.items():
        file.write(f"constexpr double {name} = {value.item()!r};\n")
    file.write("// clang-format on\n")
