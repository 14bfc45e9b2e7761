"""Reference values of analysis/metrics/geometry.h by NumPy, SciPy and PyTorch: prints geometry_reference.inc.

Probabilities are taken pair by pair from the definitions; the router's Hessian is PyTorch's, of the loss
itself.

    python3 geometry_reference.py > geometry_reference.inc
"""

import numpy as np
import torch
from scipy.stats import norm

CLUSTERS, DIM, ROWS, EXPERTS, OUTPUTS = 4, 3, 30, 3, 2
rng = np.random.default_rng(6)


def put(name, value):
    if np.ndim(value) == 0:
        print(f"constexpr double {name} = {float(value)!r};")
    else:
        print(f"const std::vector<double> {name} = {{{', '.join(repr(float(v)) for v in np.ravel(value))}}};")


def spd(degrees):
    draws = rng.standard_normal((degrees, DIM))
    return draws.T @ draws


def misassignment(means, covariances, metrics):
    table = np.zeros((CLUSTERS, CLUSTERS))
    for i in range(CLUSTERS):
        for j in range(CLUSTERS):
            if i == j:
                continue
            # x is wrong where |x - mu_i|_M^2 - |x - mu_j|_M^2 > 0, which is normal.
            direction = 2 * metrics[i] @ (means[j] - means[i])
            mean = -(means[j] - means[i]) @ metrics[i] @ (means[j] - means[i])
            table[i, j] = norm.sf(0, mean, np.sqrt(direction @ covariances[i] @ direction))
    return table


def loss(router, features, outputs, targets):
    mixed = torch.einsum("ne,neo->no", torch.softmax(features @ router.T, 1), outputs)
    return ((mixed - targets) ** 2).sum(1).mean()


def main():
    print("// Written by reference.py.\n// clang-format off")
    for name, value in (("clusters", CLUSTERS), ("dim", DIM), ("rows", ROWS), ("experts", EXPERTS),
                        ("outputs_dim", OUTPUTS)):
        print(f"constexpr int {name} = {value};")

    means = 2 * rng.standard_normal((CLUSTERS, DIM))
    covariances = np.array([spd(5) / 5 for _ in range(CLUSTERS)])
    metrics = np.array([spd(6) for _ in range(CLUSTERS)])
    noise = spd(4) / 4
    put("means", means)
    put("covariances", covariances)
    put("metrics", metrics)
    put("noise", noise)
    plain = np.array([np.eye(DIM)] * CLUSTERS)
    for name, metric in (("euclidean", plain), ("metric", metrics)):
        put(f"misassignment_{name}", misassignment(means, covariances + noise, metric))

    weights = np.array([0.4, 2.0, 0.6])
    put("weights", weights)
    put("condition", np.linalg.cond(covariances[0]))
    put("condition_transformed", np.linalg.cond(np.diag(weights) @ covariances[0] @ np.diag(weights)))

    x = rng.standard_normal((ROWS, DIM)) * np.array([1, 3, 0.2]) + 5
    labels = rng.integers(0, CLUSTERS, ROWS)
    put("x", x)
    print(f"const std::vector<int> labels = {{{', '.join(str(v) for v in labels)}}};")
    groups = [x[labels == c] for c in range(CLUSTERS)]
    put("variances_by_cluster", [g.var(0) for g in groups])

    features = torch.tensor(rng.standard_normal((ROWS, DIM)))
    router = torch.tensor(rng.standard_normal((EXPERTS, DIM)))
    outputs = torch.tensor(rng.standard_normal((ROWS, EXPERTS, OUTPUTS)))
    targets = torch.tensor(rng.standard_normal((ROWS, OUTPUTS)))
    put("features", features.numpy())
    put("probabilities", torch.softmax(features @ router.T, 1).numpy())
    put("outputs", outputs.numpy())
    put("targets", targets.numpy())
    hessian = torch.autograd.functional.hessian(lambda w: loss(w, features, outputs, targets), router)
    hessian = hessian.reshape(EXPERTS * DIM, EXPERTS * DIM).numpy()
    put("hessian", hessian)
    jacobian = torch.autograd.functional.jacobian(
        lambda w: torch.einsum("ne,neo->no", torch.softmax(features @ w.T, 1), outputs), router
    ).reshape(ROWS * OUTPUTS, EXPERTS * DIM).numpy()
    put("gauss_newton", 2 * jacobian.T @ jacobian / ROWS)
    print("// clang-format on")


if __name__ == "__main__":
    main()
