"""Reference values for reference_test.cpp from NumPy in double precision; writes reference.json beside itself.

    python3 tests/sim/model/loss/reference.py

Losses on the routing written from their equations, and their gradients in probabilities or gates by complex
steps, what is selected held fixed.
"""

import json
import math
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


def first_choices(r):
    return numpy.bincount(r.real.argmax(axis=1), minlength=r.shape[1]) / len(r)


def chance(argument):
    """Φ, to first order around the real part."""
    value = (1 + math.erf(argument.real / math.sqrt(2))) / 2
    return value + 1j * argument.imag * math.exp(-argument.real ** 2 / 2) / math.sqrt(2 * math.pi)


def load(z, spreads, draws, k):
    """CV² of the chances to be among the k largest of z + spreads · draws with a new draw for the expert."""
    noisy = z + spreads * draws
    loads = numpy.zeros(z.shape[1], complex)
    for row, e in numpy.ndindex(*z.shape):
        others = sorted((noisy[row, j] for j in range(z.shape[1]) if j != e), key=lambda h: -h.real)
        loads[e] += chance((z[row, e] - others[k - 1]) / spreads[row, e])
    return squared_variation(loads / len(z))


LOSSES = {
    "switch": ("probabilities", lambda r, g, selected: r.shape[1] * (first_choices(r) * r.mean(axis=0)).sum()),
    "gshard": ("probabilities", lambda r, g, selected: (first_choices(r) * r.mean(axis=0)).sum() / r.shape[1]),
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
spreads = abs(random.normal(size=scores.shape)) + 0.1
draws = random.normal(size=scores.shape)
loads = []
for k in (1, 2, 3):
    slopes = {"scores": numpy.zeros_like(scores), "spreads": numpy.zeros_like(scores)}
    for name in slopes:
        for place in numpy.ndindex(*scores.shape):
            moved = {"scores": scores.astype(complex), "spreads": spreads.astype(complex)}
            moved[name][place] += 1j * STEP
            slopes[name][place] = load(moved["scores"], moved["spreads"], draws, k).imag / STEP
    loads.append({"k": k, "value": float(load(scores.astype(complex), spreads.astype(complex), draws, k).real),
                  "of_scores": slopes["scores"].tolist(), "of_spreads": slopes["spreads"].tolist()})
stored = {"numpy": numpy.__version__, "tokens": TOKENS, "probabilities": r.tolist(), "gates": gates.tolist(),
          "cases": cases, "scores": scores.tolist(), "spreads": spreads.tolist(),
          "noisy": (scores + spreads * draws).tolist(), "loads": loads}
pathlib.Path(__file__).with_name("reference.json").write_text(json.dumps(stored) + "\n")
