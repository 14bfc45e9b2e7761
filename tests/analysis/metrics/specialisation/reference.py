"""Writes reference.inc: metrics of balance and specialisation computed with NumPy, SciPy and scikit-learn.

Run `python3 reference.py` in this folder; needs NumPy, SciPy and scikit-learn (Debian: python3-sklearn).
"""

import numpy as np
from scipy.stats import entropy
from sklearn.metrics import silhouette_score
from sklearn.neighbors import NearestNeighbors

rng = np.random.default_rng(20250522)
rows, experts, width, outputs, top, neighbours = 90, 6, 4, 3, 2, 10


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


points = rng.normal(size=(rows, width))
weight = rng.normal(size=(experts, width)) * 1.5
probabilities = softmax(points @ weight.T)
previous = softmax(points @ weight.T + rng.normal(size=(rows, experts)))
expert_outputs = rng.normal(size=(rows, experts, outputs)) + [1, 0, -0.5]
top1, previous_top1 = probabilities.argmax(axis=1), previous.argmax(axis=1)

nearest = NearestNeighbors(n_neighbors=neighbours + 1).fit(points).kneighbors(points, return_distance=False)
assert (nearest[:, 0] == np.arange(rows)).all()  # each point is its own nearest neighbour

best = np.argsort(-probabilities, axis=1)[:, :top]
previous_best = np.argsort(-previous, axis=1)[:, :top]
together = top1[:, None] == top1[None, :]
previously_together = previous_top1[:, None] == previous_top1[None, :]
unit = expert_outputs / np.linalg.norm(expert_outputs, axis=2, keepdims=True)
cosines = np.einsum("iao,ibo->iab", unit, unit)
off_diagonal = ~np.eye(experts, dtype=bool)
topk_loads = np.bincount(best.ravel(), minlength=experts)

expected = {
    "routing_entropy": np.mean([entropy(row) for row in probabilities]),
    "routing_variance_eq42": np.mean((probabilities.mean(axis=0) - 1 / experts) ** 2),
    "score_variance": probabilities.var(axis=0).mean(),
    "score_row_variance": probabilities.var(axis=1).mean(),
    "overlap": np.mean(top1[nearest[:, 1:]] != top1[:, None]),
    "silhouette_score": silhouette_score(points, top1),
    "fluctuation": np.mean(top1 != previous_top1),
    "fluctuation_topk": np.mean([set(a) != set(b) for a, b in zip(best, previous_best)]),
    "instability": np.mean(together != previously_together),
    "similarity": cosines[:, off_diagonal].mean(),
    "topk_max_violation": (topk_loads.max() - topk_loads.mean()) / topk_loads.mean(),
}


def text(values):
    return ", ".join(repr(value.item()) for value in np.asarray(values).ravel())


with open("reference.inc", "w", encoding="utf-8") as file:
    file.write("// Written by reference.py.\n// clang-format off\n")
    sizes = dict(rows=rows, experts=experts, width=width, outputs=outputs, top=top, neighbours=neighbours)
    for name, value in sizes.items():
        file.write(f"constexpr int {name} = {value};\n")
    for name in ("points", "weight", "probabilities", "previous", "expert_outputs"):
        file.write(f"const std::vector<double> {name} = {{{text(globals()[name])}}};\n")
    for name, value in expected.items():
        file.write(f"constexpr double {name} = {value.item()!r};\n")
    file.write("// clang-format on\n")
