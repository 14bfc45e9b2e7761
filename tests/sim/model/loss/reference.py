"""Reference values for reference_test.cpp from NumPy in double precision; writes reference.json beside itself.

    python3 tests/sim/model/loss/reference.py

Losses on the routing written from their equations, and their gradients in probabilities or gates by complex
steps, what is selected held fixed.
"""

import json
import pathlib

import numpy

STEP = 1e-30
ROWS, EXPERTS, TOKENS = 6, 4, 3


def entropy(p):
    return -(p * numpy.log(p)).sum(axis=-1)


def squared_variation(sums):
    mean = sums.mean()
    return ((sums - mean) ** 2).mean() / (mean ** 2 + 1e-10)


def balance(r, selected):
    shares = selected.sum(axis=0) / selected.sum()
    return r.shape[1] * (shares * r.mean(axis=0)).sum()


LOSSES = {
    "aux": ("probabilities", lambda r, g, selected: balance(r, selected)),
    "aux_sequence": ("probabilities", lambda r, g, selected: sum(
        balance(r[i:i + TOKENS], selected[i:i + TOKENS]) for i in range(0, ROWS, TOKENS)) * TOKENS / ROWS),
    "importance": ("gates", lambda r, g, selected: squared_variation(g.mean(axis=0))),
    "importance_probabilities": ("probabilities", lambda r, g, selected: squared_variation(r.mean(axis=0))),
    "routing_entropy": ("probabilities", lambda r, g, selected: entropy(r).mean()),
    "mutual_information": ("probabilities", lambda r, g, selected: entropy(r).mean() - entropy(r.mean(axis=0))),
}

random = numpy.random.default_rng(20170123)
scores = random.normal(size=(ROWS, EXPERTS))
r = numpy.exp(scores) / numpy.exp(scores).sum(axis=1, keepdims=True)
selected = r >= numpy.sort(r, axis=1)[:, [-2]]
gates = r * selected / (r * selected).sum(axis=1, keepdims=True)
cases = []
for name, (path, loss) in LOSSES.items():
    of = gates if path == "gates" else r
    gradient = numpy.zeros_like(of)
    for place in numpy.ndindex(*of.shape):
        moved = of.astype(complex)
        moved[place] += 1j * STEP
        gradient[place] = loss(*((r, moved) if path == "gates" else (moved, gates)), selected).imag / STEP
    if path == "gates":
        gradient = gradient * selected
    cases.append({"loss": name, "path": path, "value": float(loss(r, gates, selected)), "gradient": gradient.tolist()})
stored = {"numpy": numpy.__version__, "tokens": TOKENS, "probabilities": r.tolist(), "gates": gates.tolist(),
          "cases": cases}
pathlib.Path(__file__).with_name("reference.json").write_text(json.dumps(stored) + "\n")
