"""Reference values for reference_test.cpp from NumPy in double precision; writes reference.json beside itself.

    python3 tests/sim/model/router/reference.py

Routers written from their equations, one row and one expert at a time: scores, and the gradient of a weighted
sum of them in the parameters and inputs by complex steps. Formulas are evaluated as the text of a Python
expression.
"""

import json
import pathlib
import struct

import numpy

STEP = 1e-30
ROWS, WIDTH, EXPERTS = 5, 3, 4


class Matrix:
    def __init__(self, entries):
        self.entries = entries

    def __mul__(self, vector):
        return numpy.array([sum(row * vector) for row in self.entries])


def dot(a, b):
    return sum(a * b)


def norm(a):
    return numpy.sqrt(dot(a, a))


FUNCTIONS = {
    "dot": dot, "norm": norm, "cos": lambda a, b: dot(a, b) / (norm(a) * norm(b)), "exp": numpy.exp,
    "log": numpy.log, "tanh": numpy.tanh, "relu": lambda a: numpy.where(numpy.real(a) > 0, a, 0 * a),
    "abs": lambda a: numpy.where(numpy.real(a) > 0, a, -a)}


def log_softmax(z):
    shifted = z - z.real.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


def squared_distance(x, arrays, options):
    width = arrays.get("router_std", numpy.ones(EXPERTS))
    return [-sum((x - c) ** 2) / (2 * s ** 2) for c, s in zip(arrays["router_centers"], width)]


def two_level(x, arrays, options):
    groups = options.get("groups", 2)
    top = log_softmax(numpy.array([dot(u, x) for u in arrays["router_group_weight"]]))
    scores = numpy.zeros(EXPERTS, complex)
    for g in range(groups):
        members = [e for e in range(EXPERTS) if e * groups // EXPERTS == g]
        inside = log_softmax(numpy.array([dot(arrays["router_within_weight"][e], x) for e in members]))
        scores[members] = top[g] + inside
    return list(scores)


def formula(x, arrays, options):
    text = options["score"].replace("^", "**")
    scores = []
    for e in range(EXPERTS):
        names = {"x": x, **FUNCTIONS}
        for name, own in options["parameters"].items():
            if isinstance(own, (int, float)):
                names[name] = own
                continue
            own = {"shape": own} if isinstance(own, str) else own
            value = arrays["router_formula_" + name]
            value = value if own.get("shared") else value[e]
            if own.get("shared") and "shape" not in own:
                value = value[0]
            names[name] = Matrix(value) if numpy.ndim(value) == 2 else value
        scores.append(eval(text, {"__builtins__": {}}, names))
    return scores


KINDS = {"squared_distance": squared_distance, "two_level": two_level, "formula": formula}


def case(random, router, shapes):
    x = random.normal(size=(ROWS, WIDTH)).round(6)
    arrays = {name: random.normal(size=shape).round(6) for name, shape in shapes.items()}
    for name in arrays:
        if name.endswith("_std") or name.endswith("_s"):
            arrays[name] = (0.5 + abs(arrays[name])).round(6)
    weights = random.normal(size=(ROWS, EXPERTS)).round(6)
    options = {key: value for key, value in router.items() if key != "kind"}

    def evaluate(rows, values):
        return numpy.array([KINDS[router["kind"]](row, values, options) for row in rows])

    def slopes(of):
        gradient = numpy.zeros(of.shape)
        for place in numpy.ndindex(*of.shape):
            moved = of.astype(complex)
            moved[place] += 1j * STEP
            rows = moved if of is x else x.astype(complex)
            values = {name: moved if of is array else array.astype(complex) for name, array in arrays.items()}
            gradient[place] = (weights * evaluate(rows, values)).sum().imag / STEP
        return gradient.tolist()

    scores = evaluate(x.astype(complex), {name: array.astype(complex) for name, array in arrays.items()})
    return {"router": router, "x": x.tolist(), "arrays": {name: array.tolist() for name, array in arrays.items()},
            "weights": weights.tolist(), "scores": scores.real.tolist(), "of_inputs": slopes(x),
            "of_arrays": {name: slopes(array) for name, array in arrays.items()}}


def centroids(random, steps=3, memory=None):
    """k-means online, one batch after another, from given centroids."""
    start = random.normal(size=(EXPERTS, WIDTH)).round(6)
    batches = random.normal(size=(steps, ROWS, WIDTH)).round(6)
    centers, counts, history = start.copy(), numpy.zeros(EXPERTS), []
    for batch in batches:
        nearest = [min(range(EXPERTS), key=lambda e: (sum((row - centers[e]) ** 2), e)) for row in batch]
        old = centers.copy()
        for e in range(EXPERTS):
            mine = batch[[i for i in range(ROWS) if nearest[i] == e]]
            if len(mine) == 0:
                continue
            past = counts[e] if memory is None else min(counts[e], memory)
            counts[e] = past + len(mine)
            centers[e] = (past * old[e] + mine.sum(axis=0)) / counts[e]
        history.append({"centroids": centers.tolist(), "rows": counts.tolist()})
    return {"memory": memory, "start": start.tolist(), "batches": batches.tolist(), "history": history}


def of(score, **parameters):
    return {"kind": "formula", "score": score, "parameters": parameters}


def shapes_of(router):
    sizes = {"d": WIDTH}
    shapes = {}
    for name, own in router["parameters"].items():
        if isinstance(own, (int, float)):
            continue
        own = {"shape": own} if isinstance(own, str) else own
        shape = own.get("shape", [])
        shape = tuple(sizes[n] if n in sizes else int(n) for n in ([shape] if isinstance(shape, str) else shape))
        shapes["router_formula_" + name] = (shape or (1,)) if own.get("shared") else (EXPERTS, *shape)
    return shapes


def mixed(bits):
    """SplitMix64's finaliser."""
    mask = 2 ** 64 - 1
    bits = (bits + 0x9E3779B97F4A7C15) & mask
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & mask
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & mask
    return bits ^ bits >> 31


def row_hash(row, key):
    bits = mixed(key)
    for number in row:
        bits = mixed(bits ^ struct.unpack("<Q", struct.pack("<d", number + 0.0))[0])
    return bits


def named(expert, scale, bits):
    scores = [-1e-3 * (mixed((bits + e) % 2 ** 64) >> 11) / 2 ** 53 for e in range(EXPERTS)]
    scores[expert] = scale
    return scores


def draws(random, router, layer=0, state=None, projection=None):
    """Scores of routers that learn nothing."""
    x, labels = random.normal(size=(ROWS, WIDTH)).round(6), random.integers(0, 9, size=ROWS).tolist()
    scores = []
    for row, label in zip(x.tolist(), labels):
        if router["kind"] == "oracle":
            scores.append(named(label % EXPERTS, router.get("scale", 20.0), mixed(label)))
        elif router["kind"] == "random":
            bits = row_hash(row, state[0] << 48 ^ state[2] << 24 ^ state[1])
            scale = router.get("scale", 1.0)
            scores.append([scale * (mixed((bits + e) % 2 ** 64) >> 11) / 2 ** 53 for e in range(EXPERTS)])
        else:
            bits = row_hash(row, layer)
            if projection is not None:
                signs = [dot(numpy.array(row), p) > 0 for p in projection]
                bits = mixed(int("".join("01"[int(sign)] for sign in signs), 2))
            scores.append(named(bits % EXPERTS, router.get("scale", 20.0), bits))
    return {"router": router, "layer": layer, "x": x.tolist(), "labels": labels, "state": state or [],
            "projection": [] if projection is None else projection.tolist(), "scores": scores}


FORMULAS = [
    of("dot(x, w)", w="d"),
    of("cos(w, x) / t + b", w="d", b={}, t=0.3),
    of("-(norm(x)^2 - 2*dot(x, w) + norm(w)^2) / (2*s^2)", w="d", s={"start": 1.0, "min": 0.01}),
    of("-norm(x - w) / s", w="d", s={"start": 1.0, "shared": True}),
    of("log(1 + exp(dot(x, w))) * tanh(b) - abs(b)^1.5", w="d", b={}),
    of("dot(A * x, v) + norm(A * w)", w="d", v={"shape": [2]}, A={"shape": [2, "d"], "shared": True}),
    of("-norm(A * x)^2 + relu(dot(A * w, u))", w="d", u={"shape": [2], "shared": True}, A={"shape": [2, "d"]}),
    of("dot(relu(A * x + c), v)", v={"shape": "4"}, c={"shape": "4"}, A={"shape": [4, "d"], "shared": True}),
    of("norm(A * (x * m - w)) - dot(x, m) + b", w="d", m={"shape": ["d"], "shared": True},
       A={"shape": [2, "d"]}, b={"start": 0}),
    of("-2^2 + dot(x, w)^2 * b - norm(m) - -b/2/s", w="d", b={}, s={"start": 2}, m={"shape": "d", "shared": True}),
]

random = numpy.random.default_rng(20251122)
cases = [
    case(random, {"kind": "squared_distance"}, {"router_centers": (EXPERTS, WIDTH)}),
    case(random, {"kind": "squared_distance", "std": 0.7},
         {"router_centers": (EXPERTS, WIDTH), "router_std": (EXPERTS,)}),
    case(random, {"kind": "two_level"}, {"router_group_weight": (2, WIDTH), "router_within_weight": (EXPERTS, WIDTH)}),
    case(random, {"kind": "two_level", "groups": 3},
         {"router_group_weight": (3, WIDTH), "router_within_weight": (EXPERTS, WIDTH)})]
cases += [case(random, router, shapes_of(router)) for router in FORMULAS]
moved_centroids = [centroids(random), centroids(random, memory=2)]
drawn = [
    draws(random, {"kind": "oracle"}), draws(random, {"kind": "oracle", "scale": 3.0}),
    draws(random, {"kind": "hash"}), draws(random, {"kind": "hash", "scale": 2.0}, layer=2),
    draws(random, {"kind": "hash", "of": "projection", "bits": 5}, projection=random.normal(size=(5, WIDTH)).round(6)),
    draws(random, {"kind": "random"}, state=[1234567, 0, 0]),
    draws(random, {"kind": "random", "scale": 2.5, "draws": "redrawn"}, state=[7654321, 41, 3])]
stored = {"numpy": numpy.__version__, "cases": cases, "centroids": moved_centroids, "draws": drawn}
pathlib.Path(__file__).with_name("reference.json").write_text(json.dumps(stored) + "\n")
