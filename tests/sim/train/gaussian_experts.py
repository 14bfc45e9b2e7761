"""Writes gaussian_experts.json: likelihoods of Gaussian mixtures of linear experts, their gradients, a round of EM
and a maximum, by NumPy alone.

    python tests/sim/train/gaussian_experts.py
"""

import json
from pathlib import Path

import numpy as np


def terms(p, x, y):
    scores = x @ p["gate"].T + p["bias"]
    log_gates = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    errors = y[:, None] - x @ p["slope"].T - p["intercept"]
    return log_gates - errors**2 / (2 * p["variance"]) - 0.5 * np.log(2 * np.pi * p["variance"])


def likelihood(p, x, y):
    return np.mean(np.log(np.exp(terms(p, x, y)).sum(axis=1)))


KEYS = ["gate", "bias", "slope", "intercept", "variance"]


def pack(p):
    return np.concatenate([np.ravel(p[key] if key != "variance" else np.log(p[key])) for key in KEYS])


def unpack(theta, like):
    p, at = {}, 0
    for key in KEYS:
        size = like[key].size
        value = theta[at : at + size].reshape(like[key].shape)
        p[key] = np.exp(value) if key == "variance" else value
        at += size
    return p


def gradient(p, x, y):
    """By complex steps, exact to rounding."""
    theta = pack(p)
    slopes = np.empty(theta.size)
    for i in range(theta.size):
        moved = theta.astype(complex)
        moved[i] += 1e-30j
        slopes[i] = likelihood(unpack(moved, p), x, y).imag / 1e-30
    return slopes


def em_round(p, x, y):
    mass = np.exp(terms(p, x, y))
    shares = mass / mass.sum(axis=1, keepdims=True)
    inputs = np.column_stack([x, np.ones(len(x))])
    new = {key: p[key].copy() for key in KEYS}
    for j in range(len(p["bias"])):
        weighted = inputs * shares[:, [j]]
        solution = np.linalg.solve(weighted.T @ inputs, weighted.T @ y)
        new["slope"][j], new["intercept"][j] = solution[:-1], solution[-1]
        errors = y - inputs @ solution
        new["variance"][j] = shares[:, j] @ errors**2 / shares[:, j].sum()
    # Gates: Newton's method on Σ shares log softmax, the last component held.
    free = len(p["bias"]) - 1
    theta = np.column_stack([p["gate"], p["bias"]])
    for _ in range(100):
        scores = inputs @ theta.T
        gates = np.exp(scores - scores.max(axis=1, keepdims=True))
        gates /= gates.sum(axis=1, keepdims=True)
        slope = ((shares - gates)[:, :free].T @ inputs).ravel()
        width = inputs.shape[1]
        hessian = np.zeros((free * width, free * width))
        for j in range(free):
            for l in range(free):
                weights = gates[:, j] * ((j == l) - gates[:, l])
                hessian[j * width : (j + 1) * width, l * width : (l + 1) * width] = (
                    inputs.T * weights
                ) @ inputs
        step = np.linalg.solve(hessian, slope)
        theta[:free] += step.reshape(free, width)
        if np.abs(step).max() < 1e-13:
            break
    new["gate"], new["bias"] = theta[:, :-1], theta[:, -1]
    return new


def main():
    random = np.random.default_rng(3)
    cases = []
    for rows, dim, experts in [(40, 1, 2), (60, 2, 3)]:
        p = {
            "gate": random.normal(size=(experts, dim)),
            "bias": random.normal(size=experts),
            "slope": 2 * random.normal(size=(experts, dim)),
            "intercept": 2 * random.normal(size=experts),
            "variance": random.uniform(0.3, 1, size=experts),
        }
        x = random.normal(size=(rows, dim))
        gates = np.exp(x @ p["gate"].T + p["bias"])
        gates /= gates.sum(axis=1, keepdims=True)
        label = np.array([random.choice(experts, p=row) for row in gates])
        y = (x * p["slope"][label]).sum(axis=1) + p["intercept"][label]
        y = y + np.sqrt(p["variance"][label]) * random.normal(size=rows)
        after = em_round(p, x, y)
        best = p
        for _ in range(20000):
            best = em_round(best, x, y)
        cases.append(
            {
                **{key: p[key].tolist() for key in KEYS},
                "x": x.tolist(),
                "y": y.tolist(),
                "likelihood": likelihood(p, x, y),
                "gradient": gradient(p, x, y).tolist(),
                "after": {key: after[key].tolist() for key in KEYS},
                "maximum": likelihood(best, x, y),
                "gradient_at_maximum": float(np.abs(gradient(best, x, y)).max()),
            }
        )
    Path(__file__).with_suffix(".json").write_text(json.dumps({"cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
