"""Writes mixing_measure.json: regression functions of mixtures under every gate, by NumPy alone.

    python tests/sim/data/mixing_measure.py
"""

import json
import math
from pathlib import Path

import numpy as np

DIM, COMPONENTS, ROWS, GROUPS = 3, 5, 4, 2


def softmax(scores):
    mass = np.exp(scores - scores.max())
    return mass / mass.sum()


def log_softmax(scores):
    return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())


def scores_of(case, x):
    router, gate, bias = case["router"], case["gate"], case["bias"]
    if router["kind"] == "linear":
        return (gate @ x + bias) / router.get("temperature", 1)
    if router["kind"] == "squared_distance":
        return np.array([-np.sum((x - row) ** 2) / 2 for row in gate]) + bias
    if router["kind"] == "two_level":
        groups = np.floor(np.arange(COMPONENTS) * GROUPS / COMPONENTS).astype(int)
        of_groups = log_softmax(case["group_gate"] @ x + case["group_bias"])
        scores = np.empty(COMPONENTS)
        for g in range(GROUPS):
            own = groups == g
            scores[own] = of_groups[g] + log_softmax(gate[own] @ x + bias[own])
        return scores
    tau1, tau2 = router.get("tau1", 0), router.get("tau2", 0)
    norms = np.linalg.norm(gate, axis=1) + tau1
    return gate @ x / (norms * (np.linalg.norm(x) + tau2)) + bias


def gates_of(case, scores):
    gating = case["gating"]
    if gating["kind"] == "soft":
        return softmax(scores)
    if gating["kind"] == "topk":
        chosen = np.argsort(-scores)[: gating["k"]]
        gates = np.zeros(COMPONENTS)
        gates[chosen] = softmax(scores[chosen])
        return gates
    gates = 1 / (1 + np.exp(-scores))
    return gates / gates.sum() if gating["renormalize"] else gates


def expert(case, slope, intercept, x):
    kind = case["expert"]
    length = np.hypot(np.linalg.norm(slope), intercept) if kind.get("normalize") == "unit" else 1
    value = (slope @ x + intercept) / length
    units = {
        "relu": lambda z: max(z, 0),
        "gelu": lambda z: z * math.erfc(-z / math.sqrt(2)) / 2,
        "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    }
    return units.get(kind["kind"], lambda z: z ** kind.get("power", 1))(value)


def regression(case, x):
    gates = gates_of(case, scores_of(case, x))
    value = sum(g * expert(case, a, b, x) for g, a, b in zip(gates, case["slope"], case["intercept"]))
    return value + sum(expert(case, a, b, x) for a, b in zip(case["shared_slope"], case["shared_intercept"]))


def main():
    random = np.random.default_rng(5)
    routers = [
        {"kind": "linear"},
        {"kind": "linear", "temperature": 0.4},
        {"kind": "cosine"},
        {"kind": "perturbed_cosine", "tau1": 0.3, "tau2": 0.8},
        {"kind": "squared_distance"},
        {"kind": "two_level", "groups": GROUPS},
    ]
    gatings = [
        {"kind": "soft"},
        {"kind": "topk", "k": 2},
        {"kind": "sigmoid", "renormalize": False},
        {"kind": "sigmoid", "renormalize": True},
    ]
    experts = [
        {"kind": "linear"},
        {"kind": "polynomial", "power": 3},
        {"kind": "relu"},
        {"kind": "gelu"},
        {"kind": "sigmoid", "normalize": "unit"},
        {"kind": "polynomial", "power": 2, "normalize": "unit"},
    ]
    cases = []
    for i, router in enumerate(routers):
        for j, gating in enumerate(gatings):
            shared = (i + j) % 3
            groups = GROUPS if router["kind"] == "two_level" else 0
            case = {
                "router": router,
                "gating": gating,
                "expert": experts[(2 * i + j) % len(experts)],
                "gate": random.normal(size=(COMPONENTS, DIM)),
                "bias": random.normal(size=COMPONENTS),
                "slope": random.normal(size=(COMPONENTS, DIM)),
                "intercept": random.normal(size=COMPONENTS),
                "group_gate": random.normal(size=(groups, DIM)),
                "group_bias": random.normal(size=groups),
                "shared_slope": random.normal(size=(shared, DIM)),
                "shared_intercept": random.normal(size=shared),
            }
            x = random.normal(size=(ROWS, DIM))
            case["f"] = np.array([regression(case, row) for row in x])
            case["x"] = x
            cases.append({key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in case.items()})
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
