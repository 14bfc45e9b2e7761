"""Reference values for reference_test.cpp from NumPy in double precision; writes reference.json beside itself.

    python3 tests/sim/model/gating/reference.py

Gatings written from their equations, one row or one group at a time: gates, probabilities, and the gradient of
a weighted sum of both by complex steps at the selection of the real scores.
"""

import json
import math
import pathlib

import numpy

STEP = 1e-30


def softmax(z):
    shifted = numpy.exp(z - z.real.max())
    return shifted / shifted.sum()


def logistic(z):
    return 1 / (1 + numpy.exp(-z))


def largest(values, k):
    """The k largest, the lower index of two that are equal."""
    return sorted(range(len(values)), key=lambda e: (-values[e], e))[:k]


def over_sum(gates, renormalize):
    return gates / gates.sum() if renormalize and gates.sum() != 0 else gates


def masked(values, chosen):
    mask = numpy.zeros(len(values))
    mask[list(chosen)] = 1
    return values * mask


def sigmoid(z, bias, k=None, renormalize=None):
    gates, probabilities = [], []
    for row in z:
        s = logistic(row)
        chosen = range(len(row)) if k is None else largest((s.real + bias).tolist(), k)
        gates.append(over_sum(masked(s, chosen), (k or 0) > 1 if renormalize is None else renormalize))
        probabilities.append(s / s.sum())
    return gates, probabilities


def relu(z, bias):
    gates = [numpy.where(row.real > 0, row, 0) for row in z]
    return gates, [g / g.sum() if g.sum().real > 0 else numpy.full(len(g), 1 / len(g), complex) for g in gates]


def expert_choice(z, bias, capacity_factor=2):
    p = numpy.array([softmax(row) for row in z])
    n, e = p.shape
    capacity = min(n, math.ceil(capacity_factor * n / e - 1e-9))
    mask = numpy.zeros((n, e))
    for j in range(e):
        mask[largest(p[:, j].real.tolist(), capacity), j] = 1
    return p * mask, p


def sinkhorn(z, bias, k, tolerance=1e-4, rounds=100):
    p = numpy.array([softmax(row) for row in z])
    cost = numpy.exp(z.real - z.real.max(axis=1, keepdims=True))
    columns = numpy.ones(z.shape[1])
    for _ in range(rounds):
        rows = 1 / (len(z) * (cost @ columns + 1e-8))
        following = 1 / (z.shape[1] * (cost.T @ rows + 1e-8))
        change = abs(following - columns).mean()
        columns = following
        if change <= tolerance:
            break
    plan = rows[:, None] * cost * columns
    activations = logistic(z) if k == 1 else p
    return [masked(activations[t], largest(plan[t].tolist(), k)) for t in range(len(z))], p


def topk(z, bias, k, renormalize=None, capacity_factor=None, drop="order"):
    p = numpy.array([softmax(row) for row in z])
    n, e = p.shape
    room = [math.ceil((capacity_factor or e) * k * n / e - 1e-9)] * e
    chosen = []
    for row in p:
        open_ones = [j for j in range(e) if drop != "next" or room[j] > 0]
        chosen.append(sorted(open_ones, key=lambda j: (-row[j].real, j))[:k])
        for j in chosen[-1]:
            room[j] -= drop == "next"
    gates = numpy.array([over_sum(masked(p[t], chosen[t]), k > 1 if renormalize is None else renormalize)
                         for t in range(n)])
    if capacity_factor is None or drop == "next":
        return gates, p
    for j in range(e):
        takers = [t for t in range(n) if j in chosen[t]]
        by_order, by_size = lambda t: (chosen[t].index(j), t), lambda t: (-p[t, j].real, t)
        takers.sort(key=by_order if drop == "order" else by_size)
        gates[takers[room[j]:], j] = 0
    return gates, p


def top1(z, bias, straight_through=True):
    """Gates 1 with the slopes of r, as complex steps see them."""
    p = numpy.array([softmax(row) for row in z])
    chosen = numpy.array([masked(numpy.ones(len(row)), largest((row.real + bias).tolist(), 1)) for row in p])
    return chosen * (1 + 1j * p.imag), p


KINDS = {"top1": top1, "sigmoid": sigmoid, "relu": relu, "expert_choice": expert_choice, "sinkhorn": sinkhorn, "topk": topk,
         "noisy_topk": topk}


def case(random, gating, rows=7, experts=4, bias=None):
    z = random.normal(size=(rows, experts)).round(6)
    gate_weights, probability_weights = random.normal(size=(2, rows, experts)).round(6)
    fields = {key: value for key, value in gating.items() if key != "kind"}
    shift = numpy.zeros(experts) if bias is None else numpy.array(bias)

    def evaluate(scores):
        gates, probabilities = KINDS[gating["kind"]](scores.astype(complex), shift, **fields)
        return numpy.array(gates), numpy.array(probabilities)

    def slopes(part, weights):
        gradient = numpy.zeros_like(z)
        for place in numpy.ndindex(*z.shape):
            moved = z.astype(complex)
            moved[place] += 1j * STEP
            gradient[place] = (weights * evaluate(moved)[part]).sum().imag / STEP
        return gradient.tolist()

    gates, probabilities = evaluate(z)
    return {"gating": gating, "bias": bias, "scores": z.tolist(), "gates": gates.real.tolist(),
            "probabilities": probabilities.real.tolist(), "gate_weights": gate_weights.tolist(),
            "probability_weights": probability_weights.tolist(), "of_gates": slopes(0, gate_weights),
            "of_probabilities": slopes(1, probability_weights)}


random = numpy.random.default_rng(20170118)
cases = [case(random, gating) for gating in (
    {"kind": "sigmoid"}, {"kind": "sigmoid", "k": 2}, {"kind": "sigmoid", "k": 1},
    {"kind": "sigmoid", "renormalize": True}, {"kind": "sigmoid", "k": 3, "renormalize": False},
    {"kind": "relu"}, {"kind": "expert_choice"}, {"kind": "expert_choice", "capacity_factor": 0.7},
    {"kind": "sinkhorn", "k": 1}, {"kind": "sinkhorn", "k": 2}, {"kind": "noisy_topk", "k": 2},
    {"kind": "topk", "k": 2, "capacity_factor": 0.8},
    {"kind": "topk", "k": 2, "capacity_factor": 0.8, "drop": "probability"},
    {"kind": "topk", "k": 2, "capacity_factor": 0.8, "drop": "next"},
    {"kind": "topk", "k": 1, "capacity_factor": 1.0, "drop": "next"})]
cases.append(case(random, {"kind": "sigmoid", "k": 2}, bias=[0.4, 0.0, -0.3, 0.2]))
cases.append(case(random, {"kind": "top1", "straight_through": True}))
text = json.dumps({"numpy": numpy.__version__, "cases": cases})
pathlib.Path(__file__).with_name("reference.json").write_text(text + "\n")
