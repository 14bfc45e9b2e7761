"""Predictions of a loss-free balanced model, recomputed from its saved arrays alone.

    build/moelab run tests/stored/loss_free.json --out runs/loss_free
    python3 tests/stored/loss_free.py runs/loss_free

Prints the largest differences from the program's outputs; exit status 1 above 1e-6.
"""

import pathlib
import sys

import numpy as np

K = 2


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def check(cell):
    array = {file.stem: np.load(file).astype(float) for file in cell.glob("*.npy")}
    x, bias = array["test_inputs"], array["selection_bias"]
    r = softmax(x @ array["router_weight"].T)
    hidden = np.maximum(np.einsum("nd,ehd->neh", x, array["expert_weight_1"]) + array["expert_bias_1"], 0)
    outputs = np.einsum("neh,eoh->neo", hidden, array["expert_weight_2"]) + array["expert_bias_2"]
    rows = np.arange(len(x))
    serving = np.argmax(r + bias, axis=1)
    differences = {
        "test_probs": np.abs(r - array["test_probs"]).max(),
        "test_outputs_soft": np.abs(np.einsum("ne,neo->no", r, outputs) - array["test_outputs_soft"]).max(),
        "test_outputs_top1": np.abs(outputs[rows, serving] - array["test_outputs_top1"]).max(),
    }
    without = np.mean(np.argmax(r, axis=1) != serving)
    selected = np.argsort(-(r + bias), axis=1, kind="stable")[:, :K]
    gates = np.take_along_axis(r, selected, axis=1)
    gates /= gates.sum(axis=1, keepdims=True)
    f = np.einsum("nk,nko->no", gates, outputs[rows[:, None], selected])
    loss = np.mean((f - array["test_targets"]) ** 2)
    print(cell.name, differences, f"loss_eval {loss:.9f}, rows whose biases change the first expert {without:.3f}")
    return max(differences.values())


def main():
    run = pathlib.Path(sys.argv[1])
    worst = 0
    for cell in sorted((run / "cells").iterdir()):
        worst = max(worst, check(cell))
    sys.exit(int(worst > 1e-6))


main()
