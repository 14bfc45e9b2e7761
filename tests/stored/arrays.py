"""Arrays for `moelab analyze`, and the command lines that analyze them.

    python3 tests/stored/arrays.py FOLDER

Writes the arrays into FOLDER and prints the command lines. The numbers are the same on every machine: they come
from Python's Mersenne Twister by sums, products and quotients.
"""

import math
import pathlib
import random
import struct
import sys

# Formats of struct for the data types of NumPy.
FORMATS = {"<f8": "d", "<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B"}


def flattened(values):
    for value in values:
        if isinstance(value, list):
            yield from flattened(value)
        else:
            yield value


def shape_of(values):
    shape = []
    while isinstance(values, list):
        shape.append(len(values))
        values = values[0] if values else None
    return tuple(shape)


def write_npy(file, values, dtype="<f8", shape=None, fortran=False):
    """Writes nested lists as an array of NumPy's format, version 1.0."""
    shape = shape_of(values) if shape is None else shape
    if fortran:
        rows, columns = shape
        flat = [values[i][j] for j in range(columns) for i in range(rows)]
    else:
        flat = list(flattened(values))
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(flat)}{FORMATS[dtype]}", *flat)
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


class Numbers:
    """Random arrays of one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def normal(self):
        """A number that is normal enough: the sum of twelve uniform ones less its mean."""
        return sum(self.random.random() for _ in range(12)) - 6

    def labels(self, count, clusters):
        return [int(self.random.random() * clusters) for _ in range(count)]

    def matrix(self, rows, columns):
        return [[self.normal() for _ in range(columns)] for _ in range(rows)]

    def probabilities(self, labels, experts):
        """Rows that sum to 1, in which the expert of the row's label has more than its share."""
        rows = []
        for label in labels:
            weights = [self.random.random() ** 3 + (2.0 if e == label % experts else 0.0) * self.random.random()
                       for e in range(experts)]
            total = math.fsum(weights)
            rows.append([weight / total for weight in weights])
        return rows

    def inputs(self, labels, dim):
        """Rows around the mean of their label's cluster."""
        means = self.matrix(max(labels) + 1, dim)
        return [[3 * means[label][i] + self.normal() for i in range(dim)] for label in labels]


def products(inputs, weights):
    """x · w_e of every row and expert."""
    return [[math.fsum(x * w for x, w in zip(row, weight)) for weight in weights] for row in inputs]


def cut(rows, tokens):
    """Rows as sequences of so many tokens."""
    return [rows[i:i + tokens] for i in range(0, len(rows), tokens)]


def write_cases(folder):
    """Writes the arrays; the names of the cases with the options of `moelab analyze`."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cases = []

    def file(name, values, **format):
        write_npy(folder / f"{name}.npy", values, **format)
        return str(folder / f"{name}.npy")

    def case(name, *options):
        cases.append((name, [str(option) for option in options]))

    # Rows of one token: 240 rows, 6 experts, 5 clusters.
    some = Numbers(1)
    labels = some.labels(240, 5)
    probs = file("probs", some.probabilities(labels, 6))
    clusters = file("labels", labels, dtype="<i8")
    rows = some.inputs(labels, 7)
    inputs = file("inputs", rows)
    weights = some.matrix(6, 7)
    router = file("router", weights)
    logits = file("logits", products(rows, weights))
    later = file("later_logits", products(rows, [[w + 0.3 * some.normal() for w in row] for row in weights]))
    embeddings = file("embeddings", some.inputs(labels, 3))
    outputs = file("outputs", [some.matrix(6, 4) for _ in range(240)])
    previous = file("previous", some.probabilities(labels, 6))
    experts = file("experts", some.labels(240, 6), dtype="<i4")
    pairs = file("pairs", [[e, (e + 1 + d) % 6] for e, d in zip(some.labels(240, 6), some.labels(240, 5))],
                 dtype="<i8")
    parts = file("parts", [[label, other] for label, other in zip(labels, some.labels(240, 3))], dtype="<i8")
    case("probs", "--probs", probs)
    case("logits", "--logits", logits)
    case("labels", "--probs", probs, "--labels", clusters)
    case("labels_of_parts", "--probs", probs, "--labels", parts)
    case("labels_of_parts_shuffled", "--logits", logits, "--labels", parts, "--inputs", inputs, "--router", router)
    case("router", "--probs", probs, "--router", router)
    case("shuffled", "--logits", logits, "--labels", clusters, "--inputs", inputs, "--router", router)
    case("shuffled_other_probs", "--probs", probs, "--labels", clusters, "--inputs", inputs, "--router", router)
    case("inputs", "--probs", probs, "--inputs", inputs)
    case("inputs_neighbours", "--logits", logits, "--inputs", inputs, "--neighbours", 3)
    case("embeddings", "--probs", probs, "--embeddings", embeddings)
    case("embeddings_of_all", "--probs", probs, "--inputs", inputs, "--embeddings", embeddings, "--neighbours", 239)
    case("expert_outputs", "--probs", probs, "--expert-outputs", outputs)
    case("top_2", "--probs", probs, "--top-k", 2)
    case("top_6", "--logits", logits, "--top-k", 6)
    case("previous_probs", "--probs", probs, "--previous-probs", previous)
    case("previous_probs_top_2", "--probs", probs, "--previous-probs", previous, "--top-k", 2)
    case("previous_logits", "--logits", logits, "--previous-logits", later, "--top-k", 3)
    case("previous_assignments", "--probs", probs, "--previous-assignments", experts)
    case("previous_assignments_top_2", "--probs", probs, "--previous-assignments", pairs, "--top-k", 2)
    case("everything", "--logits", logits, "--labels", clusters, "--inputs", inputs, "--router", router,
         "--embeddings", embeddings, "--expert-outputs", outputs, "--previous-logits", later, "--top-k", 2,
         "--neighbours", 5)

    # Gates: rows that go to few experts, zeros elsewhere; scores of −∞; equal scores.
    gates = Numbers(2)
    pair = file("two_gates", [[0.5, 0.5, 0, 0], [0, 0.75, 0.25, 0], [1, 0, 0, 0], [0, 0, 0.25, 0.75]] * 8)
    masked = [[gates.normal() if gates.random.random() < 0.6 or e == 0 else -math.inf for e in range(5)]
              for _ in range(60)]
    case("gates_of_two", "--probs", pair, "--top-k", 2, "--labels", file("four", [0, 1, 0, 2] * 8, dtype="<i8"))
    case("masked_logits", "--logits", file("masked", masked), "--top-k", 2)
    case("equal_logits", "--logits", file("equal", [[0.0] * 4] * 12), "--top-k", 2)
    case("large_logits", "--logits", file("large", [[800.0, -800.0, 799.0], [-1e300, 0.0, 1.0]]))
    case("same_expert", "--probs", file("same", [[0.75, 0.25]] * 9), "--inputs", file("nine", gates.matrix(9, 2)),
         "--labels", file("three", [0, 1, 2] * 3, dtype="<i8"))

    # Data types and layouts of files.
    types = Numbers(3)
    kinds = types.labels(50, 4)
    singles = types.probabilities(kinds, 4)
    case("float32", "--probs", file("float32", singles, dtype="<f4"), "--labels", file("uint8", kinds, dtype="|u1"))
    case("fortran", "--probs", file("fortran", singles, fortran=True), "--inputs",
         file("fortran_inputs", types.inputs(kinds, 3), dtype="<f4", fortran=True))

    # Sequences: 40 of 9 tokens, 4 experts.
    tokens = Numbers(4)
    topics = tokens.labels(360, 6)
    token_rows = tokens.inputs(topics, 5)
    token_weights = tokens.matrix(4, 5)
    sequences = file("sequences", cut(tokens.probabilities(topics, 4), 9))
    sequence_logits = file("sequence_logits", cut(products(token_rows, token_weights), 9))
    sequence_labels = file("sequence_labels", cut(topics, 9), dtype="<i8")
    sequence_inputs = file("sequence_inputs", cut(token_rows, 9))
    token_router = file("token_router", token_weights)
    case("sequences", "--probs", sequences, "--axes", "BSE")
    case("sequences_labels", "--probs", sequences, "--labels", sequence_labels)
    case("sequences_shuffled", "--logits", sequence_logits, "--labels", sequence_labels, "--inputs", sequence_inputs,
         "--router", token_router)
    case("sequences_everything", "--probs", sequences, "--labels", sequence_labels, "--inputs", sequence_inputs,
         "--router", token_router, "--top-k", 2, "--expert-outputs",
         file("sequence_outputs", cut([tokens.matrix(4, 3) for _ in range(360)], 9)), "--previous-probs",
         file("sequence_previous", cut(tokens.probabilities(topics, 4), 9)))
    case("sequences_previous_assignments", "--probs", sequences, "--axes", "BSE", "--previous-assignments",
         file("sequence_experts", cut(tokens.labels(360, 4), 9), dtype="<i8"))

    # Few rows, one expert, and more rows than distances are measured of.
    few = Numbers(5)
    case("one_row", "--probs", file("one_row", [[0.25, 0.75]]), "--inputs", file("one_input", [[1.0, 2.0]]),
         "--labels", file("one_label", [0], dtype="<i8"))
    case("one_expert", "--probs", file("one_expert", [[1.0]] * 7), "--inputs", file("seven", few.matrix(7, 2)),
         "--expert-outputs", file("one_output", [few.matrix(1, 2) for _ in range(7)]))
    case("no_rows", "--probs", file("no_rows", [], shape=(0, 3)), "--labels", file("no_labels", [], dtype="<i8"))
    many_labels = few.labels(6000, 8)
    many = file("many", few.probabilities(many_labels, 8))
    many_previous = file("many_previous", few.probabilities(many_labels, 8))
    case("many_rows", "--probs", many, "--labels", file("many_labels", many_labels, dtype="<i8"), "--embeddings",
         file("many_embeddings", few.inputs(many_labels, 2)), "--previous-probs", many_previous, "--top-k", 2)

    # What is refused.
    case("refused_sum", "--probs", file("wrong_sum", [[0.5, 0.6]]))
    case("refused_negative", "--probs", file("negative", [[1.5, -0.5]]))
    case("refused_both", "--probs", probs, "--logits", logits)
    case("refused_none", "--labels", clusters)
    case("refused_shape", "--probs", probs, "--labels", sequence_labels)
    case("refused_router", "--probs", probs, "--router", token_router)
    case("refused_top_k", "--probs", probs, "--top-k", 7)
    case("refused_neighbours", "--probs", probs, "--inputs", inputs, "--neighbours", 240)
    case("refused_infinite", "--logits", file("infinite", [[-math.inf, -math.inf]]))
    case("refused_label", "--probs", probs, "--labels", file("negative_label", [-1] + labels[1:], dtype="<i8"))
    return cases


if __name__ == "__main__":
    for case_name, case_options in write_cases(sys.argv[1]):
        print(f"{case_name}: moelab analyze {' '.join(case_options)}")
