#!/usr/bin/env python3
"""Draws every kind of figure in several styles on one picture, for people to look at.

    tests/plots/contact_sheet.py PROGRAM FOLDER              the styles icml and slides
    tests/plots/contact_sheet.py PROGRAM FOLDER screen …     other styles

Runs two small scenarios in FOLDER, draws their figures, and writes FOLDER/sheet.png with a column for each
style. The labels of the scenarios are long on purpose. A kind of figure that is not in the scenarios is drawn with
the values that other figures give its required fields. Checks that every kind of figure is there, that no PDF has a
Type 3 font, and that the PDFs have the widths of their styles to 0.01 inch.

Exit status: 0 done, 1 something is wrong, 77 without gnuplot, rsvg-convert or poppler.
"""

import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

COLUMN, GAP, HEAD = 640, 24, 22  # pixels
WIDTHS = {"icml": 3.25, "neurips": 5.5, "jmlr": 6, "slides": 8, "screen": 7}  # inches
NMSE = "test_nmse_top1"

ALL_KINDS = {
    "name": "all_kinds",
    "title": "Routers that learn and routers that stay as they were drawn",
    "source": "the contact sheet",
    "labels": {
        "learned": "learned linear router", "frozen": "frozen linear router", "cosine_low": "cosine router, τ = 0.5",
        "cosine_high": "cosine router, τ = 2", "train_loss": "training loss L_o", "model.experts": "experts",
    },
    "data": {"generator": "gaussian_mixture", "clusters": 16, "dim": 6, "mean_std": 2.0,
             "target": {"kind": "constant", "dim": 3}, "train_samples": 320, "test_samples": 300},
    "model": {"experts": 16, "router": "linear", "expert": {"kind": "mlp", "depth": 2, "width": 4},
              "gating": {"train": "soft", "eval": "top1"}},
    "train": {"optimizer": "adam", "lr": {"expert": 0.01, "router": 0.03}, "batch_size": 32, "steps": 120,
              "record_every": 20},
    "metrics": ["task", "sparsity", "load"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": False},
             "cosine_low": {"model.router": {"kind": "cosine", "temperature": 0.5}},
             "cosine_high": {"model.router": {"kind": "cosine", "temperature": 2}}},
    "sweep": {"data.train_samples": [320, 1280, 5120], "model.experts": [4, 16]},
    "seeds": {"root": 1, "count": 3},
    "save": ["weights", "routing", "routing_steps"],
    "claims": [
        {"id": "learned_wins", "op": "<", "at": "each", "text": "The learned router has a lower loss than the frozen one.",
         "left": {"arm": "learned", "metric": NMSE}, "right": {"arm": "frozen", "metric": NMSE}},
        {"id": "cosine_wins", "op": "<", "at": "last", "text": "The cosine router has a lower loss than the linear one.",
         "left": {"arm": "cosine_low", "metric": NMSE}, "right": {"arm": "learned", "metric": NMSE}},
        {"id": "purer", "op": ">", "at": "last", "text": "The learned router has purer experts.",
         "left": {"arm": "learned", "metric": "top1_cluster_purity"},
         "right": {"arm": "frozen", "metric": "top1_cluster_purity"}},
        {"id": "more_data_help", "op": "decreases", "arm": "learned", "metric": NMSE, "along": "data.train_samples",
         "text": "More samples lower the loss."},
    ],
    "figures": [
        {"id": "lines", "x": "data.train_samples", "y": NMSE, "x_scale": "log", "y_scale": "log",
         "where": {"model.experts": 16}},
        {"id": "steps", "x": "step", "y": ["train_loss", NMSE], "y_scale": "log",
         "where": {"data.train_samples": 1280, "model.experts": 16}},
        {"id": "shares", "x": "data.train_samples / data.clusters", "y": "top1_cluster_purity"},
        {"id": "expression", "x": "data.train_samples / (data.dim * data.clusters * log(data.clusters))", "y": NMSE,
         "arms": ["learned", "frozen"]},
        {"id": "measured", "x": "cluster_entropy", "y": "expert_load_max_violation", "arms": ["learned", "cosine_low"]},
        {"id": "heat_map", "kind": "heat_map", "x": "data.train_samples", "y": "model.experts", "value": NMSE},
        {"id": "rate_panels", "kind": "rate_panels", "x": "data.train_samples", "y": NMSE, "series": "model.experts",
         "rows": ["linear", "cosine"], "columns": ["first", "second"],
         "reported": {"learned": "n^{-1/2}", "frozen": "n^{-1/4}"}},
        {"id": "embedding", "kind": "embedding", "where": {"data.train_samples": 1280, "model.experts": 16}},
        {"id": "cluster_map", "kind": "cluster_map", "where": {"data.train_samples": 1280, "model.experts": 16}},
        {"id": "router_rows", "kind": "cluster_map", "value": "router_rows", "arms": ["learned", "frozen"],
         "where": {"data.train_samples": 1280, "model.experts": 16}},
        {"id": "load_map", "kind": "load_map", "where": {"data.train_samples": 1280, "model.experts": 16}},
        {"id": "claim", "kind": "claim", "claim": "learned_wins"},
    ],
}

CROSSING = {
    "name": "crossing",
    "title": "The most noise at which experts find the clusters",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 8, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 400, "test_samples": 300},
    "model": {"experts": 4, "router": "linear", "expert": "constant", "gating": {"train": "soft", "eval": "top1"}},
    "train": {"optimizer": "adam", "lr": 0.03, "batch_size": 32, "steps": 150},
    "metrics": ["task", "sparsity"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": False}},
    "sweep": {"model.experts": [4, 8, 16],
              "data.noise_std": {"crossing": {"metric": "top1_cluster_purity", "level": 0.6, "low": 0.1, "high": 10,
                                              "scale": "log", "resolution": 0.3}}},
    "seeds": {"root": 1, "count": 3},
    "figures": [{"id": "crossing", "kind": "crossing", "x": "model.experts / data.clusters", "x_scale": "log",
                 "y_scale": "log", "x_label": "experts ÷ clusters", "y_label": "noise"}],
}


def answer(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"contact_sheet: moelab {' '.join(map(str, words))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def add_missing_kinds(kinds):
    """Adds a figure of each kind that the scenarios lack: its required fields have values of other figures. The kinds
    that have a required field of their own."""
    figures = ALL_KINDS["figures"]
    values = {field: value for figure in reversed(figures) for field, value in figure.items()}
    shown, left = {figure.get("kind", "lines") for figure in figures + CROSSING["figures"]}, []
    for kind in kinds:
        name, required = kind["name"], {field["name"] for field in kind["fields"] if field["required"]}
        if name in shown:
            continue
        if required <= values.keys():
            figures.append({field: values[field] for field in sorted(required)} | {"id": name, "kind": name})
        else:
            left.append(name)
    return left


def pixels_of(png):
    return struct.unpack(">II", png.read_bytes()[16:24])


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def page_faults(pdf, inches):
    """What a conference would refuse about a PDF of this width."""
    faults = []
    if " Type 3 " in output_of("pdffonts", pdf):
        faults.append(f"{pdf.name} has a Type 3 font")
    width = float(re.search(r"Page size: +([\d.]+)", output_of("pdfinfo", pdf)).group(1)) / 72
    if abs(width - inches) > 0.01:
        faults.append(f"{pdf.name} is {width:.3f} in wide, needs {inches} in")
    return faults


def drawn_figures(program, folder, scenario, styles):
    """The figures of a scenario and the forest plot of its claims, as FOLDER/ID_STYLE.png and .pdf: their ids."""
    file, run = folder / f"{scenario['name']}.json", folder / scenario["name"]
    file.write_text(json.dumps(scenario))
    answer(program, "run", file, "--out", run)
    names = [figure["id"] for figure in scenario["figures"]] + (["claims"] if scenario.get("claims") else [])
    for style in styles:
        answer(program, "plot", run, "--style", style)
        for name in names:
            for ending in ("png", "pdf"):
                shutil.copy(run / "figures" / f"{name}.{ending}", folder / f"{name}_{style}.{ending}")
    return names


def write_sheet(folder, names, styles):
    """A row for each figure and a column for each style, each picture as wide as its column."""
    parts, top = [], 0
    for name in names:
        heights = []
        for column, style in enumerate(styles):
            picture = folder / f"{name}_{style}.png"
            wide, high = pixels_of(picture)
            heights.append(COLUMN * high / wide)
            left = GAP + column * (COLUMN + GAP)
            parts.append(f'<text x="{left}" y="{top + 16}" font-family="DejaVu Sans" font-size="13">{name}, {style}</text>'
                         f'<image x="{left}" y="{top + HEAD}" width="{COLUMN}" height="{heights[-1]:.0f}" '
                         f'href="{picture.name}"/>')
        top += HEAD + max(heights) + GAP
    width = GAP + len(styles) * (COLUMN + GAP)
    page = folder / "sheet.svg"
    page.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top:.0f}">'
                    f'<rect width="100%" height="100%" fill="#ddd"/>{"".join(parts)}</svg>')
    subprocess.run(["rsvg-convert", "-o", folder / "sheet.png", page], check=True)


def main(program, folder, styles):
    folder.mkdir(parents=True, exist_ok=True)
    kinds = json.loads(answer(program, "list", "figures", "--json"))["figures"]["kinds"]
    faults = [f"no figure of kind {kind} is on the sheet" for kind in add_missing_kinds(kinds)]
    names = [name for scenario in (ALL_KINDS, CROSSING) for name in drawn_figures(program, folder, scenario, styles)]
    faults += [fault for name in names for style in styles
               for fault in page_faults(folder / f"{name}_{style}.pdf", WIDTHS[style])]
    write_sheet(folder, names, styles)
    for fault in faults:
        print(f"contact_sheet: {fault}", file=sys.stderr)
    print(f"contact_sheet: {len(names)} figures in {len(styles)} styles, {folder / 'sheet.png'}")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for tool in ("gnuplot", "rsvg-convert", "pdffonts"):
        if not shutil.which(tool):
            print(f"contact_sheet skipped: no {tool} (packages/install test)")
            sys.exit(77)
    sys.exit(main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:] or ["icml", "slides"]))
