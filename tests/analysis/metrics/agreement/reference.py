"""Writes reference.inc: how two routings and the labels of the same rows agree, computed with NumPy,
independently of the C++ code: by definitions over pairs and over rows, without contingency tables.

Run `python3 reference.py` in this folder; needs NumPy.
"""

from itertools import combinations

import numpy as np

rng = np.random.default_rng(20240612)
rows, experts, top = 60, 6, 3


def softmax(scores):
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


labels = rng.integers(0, 4, size=rows)
scores = rng.normal(size=(rows, experts)) + 2 * np.eye(experts)[labels % experts]
scores[:, experts - 1] -= 6  # an expert that serves nothing
probabilities = softmax(scores)
others = softmax(scores + rng.normal(size=(rows, experts)))
one, other = probabilities.argmax(axis=1), others.argmax(axis=1)
sets = [set(row) for row in np.argsort(-probabilities, axis=1)[:, :top]]
other_sets = [set(row) for row in np.argsort(-others, axis=1)[:, :top]]


def entropy(values):
    """H of what each row has, in nats: the mean of −log of the share of rows that have the same."""
    return -np.mean([np.log(np.mean([value == each for each in values])) for value in values])


def rand_index(left, right):
    pairs = list(combinations(range(rows), 2))
    in_left = np.array([left[i] == left[j] for i, j in pairs])
    in_right = np.array([right[i] == right[j] for i, j in pairs])
    expected = in_left.sum() * in_right.sum() / len(pairs)
    return ((in_left & in_right).sum() - expected) / ((in_left.sum() + in_right.sum()) / 2 - expected)


def relative_entropy(p, q):
    return (p * np.log(p / q)).sum()


joint = list(zip(one, other))
information = entropy(list(one)) + entropy(list(other)) - entropy(joint)
p, q = probabilities.mean(axis=0), others.mean(axis=0)
ordered = np.sort(probabilities, axis=1)
partners = []
for i in range(experts):
    own = [experts_of_row for experts_of_row in sets if i in experts_of_row]
    if own:
        partners.append(max(np.mean([j in each for each in own]) for j in range(experts) if j != i))

expected = {
    "ari": rand_index(one, other),
    "nmi": information / ((entropy(list(one)) + entropy(list(other))) / 2),
    "dispatch": entropy(list(zip(one, labels))) - entropy(list(one)),
    "divergence": (relative_entropy(p, (p + q) / 2) + relative_entropy(q, (p + q) / 2)) / 2,
    "margin": np.mean(ordered[:, -1] - ordered[:, -2]),
    "saturation": np.mean([len(a & b) / top for a, b in zip(sets, other_sets)]),
    "together": np.mean(partners),
    "dead": np.mean([np.mean(one == e) < 1 / (10 * experts) for e in range(experts)]),
}


def text(values):
    return ", ".join(repr(value.item()) for value in np.asarray(values).ravel())


with open("reference.inc", "w", encoding="utf-8") as file:
    file.write("// Written by reference.py.\n// clang-format off\n")
    for name, value in dict(rows=rows, experts=experts, top=top).items():
        file.write(f"constexpr int {name} = {value};\n")
    for name in ("probabilities", "others"):
        file.write(f"const std::vector<double> {name} = {{{text(globals()[name])}}};\n")
    file.write(f"const std::vector<int> labels = {{{text(labels)}}};\n")
    for name, value in expected.items():
        file.write(f"constexpr double {name} = {np.float64(value).item()!r};\n")
    file.write("// clang-format on\n")
