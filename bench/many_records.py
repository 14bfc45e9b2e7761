#!/usr/bin/python3
"""Writes a run directory of very many recorded cells, to time `status` and `export` on it:

    bench/many_records.py DIR [CELLS] [STEPS] && time build/moelab status DIR && time build/moelab export DIR --out DIR/cells.csv

The cells have the metrics of the groups task, sparsity and router_norms, at STEPS recorded steps, in 8 journals.
"""
import json
import os
import random
import sys
import zlib

METRICS = ["bayes_nmse", "cluster_entropy", "cluster_entropy_shuffled", "effective_experts",
           "effective_experts_shuffled", "router_norm_ratio", "router_signal_fraction", "test_loss_eval",
           "test_loss_soft", "test_loss_top1", "test_nmse_soft", "test_nmse_top1", "top1_cluster_purity",
           "train_loss", "train_nmse"]


def values(draw):
    return {name: draw.random() for name in METRICS}


def line(cell, steps, draw):
    trace = [{"step": 100 * step, "metrics": values(draw)} for step in range(steps)]
    record = {"cell": cell, "state": "done", "metrics": trace[-1]["metrics"], "trace": trace, "message": "",
              "timing": {"seconds": 1.5, "finished_at": "2026-01-31T12:00:00Z"}}
    text = json.dumps(record, separators=(",", ":"))
    return '{"checksum":"%08x","record":%s}\n' % (zlib.crc32(text.encode()), text)


def main():
    directory = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    draw = random.Random(1)
    os.makedirs(directory + "/journal")
    cells = [{"id": "%016x" % draw.getrandbits(64), "arm": arm, "seed": seed,
              "point": {"data.train_samples": 640 << samples, "model.experts": 8 << experts}}
             for arm in ("learned", "frozen") for samples in range(10) for experts in range(10)
             for seed in range(max(1, count // 200))]
    plan = {"name": "many", "title": "", "source": "", "profile": "", "scenario": {}, "claims": [], "figures": [],
            "arms": ["learned", "frozen"], "sweep": ["data.train_samples", "model.experts"], "cells": cells}
    with open(directory + "/plan.json", "w") as file:
        json.dump(plan, file, indent=1)
    order = cells[:]
    draw.shuffle(order)
    for journal in range(8):
        with open("%s/journal/%d.jsonl" % (directory, journal), "w") as file:
            file.writelines(line(cell["id"], steps, draw) for cell in order[journal::8])


main()
