#!/usr/bin/env python3
"""Builds a one-page paper from the program's files without editing them: latex_paper.py PROGRAM FOLDER

FOLDER is the folder of contact_sheet.py. The paper has columns of 3.25 inches. It has three figures in the style icml
with their captions. It has two tables of `moelab table --format latex`. The script checks that pdflatex reports
nothing. So no table is wider than its column. The paper must have one page and no font of Type 3.

Exit status: 0 done. 1 something is wrong. 77 pdflatex, poppler or the figures are missing.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from contact_sheet import ALL_KINDS, answer, output_of, page_faults

FIGURES = ("lines", "claim", "router_rows")
TABLES = {
    "losses": ("--metric", "test_nmse_top1", "--at", "data.train_samples=5120"),
    "purity": ("--metric", "test_nmse_top1", "--metric", "top1_cluster_purity", "--best", "--at", "model.experts=16",
               "--at", "data.train_samples=5120"),
}
PAPER = r"""\documentclass{article}
\usepackage[letterpaper,text={6.75in,10in}]{geometry}
\usepackage{graphicx,booktabs}
\makeatletter  %% pieces of the page with captions, which do not float
\newcommand{\column}[1]{\begin{minipage}[t]{3.25in}\vspace{0pt}\def\@captype{figure}%%
\includegraphics{#1.pdf}\input{#1}\end{minipage}}
\newcommand{\tables}{\begin{minipage}[t]{3.25in}\vspace{0pt}\centering\def\@captype{table}%%
\input{losses}\caption{Losses at 5120 samples.}\label{tab:losses}\medskip
\input{purity}\caption{Losses and purity with 16 experts.}\label{tab:purity}\end{minipage}}
\makeatother
\begin{document}
\noindent Figures %s and Tables~\ref{tab:losses} and~\ref{tab:purity} come from the program.

\noindent\column{%s}\hfill\column{%s}

\noindent\column{%s}\hfill\tables
\end{document}
"""
COMPLAINTS = re.compile(r"^(!.*|Overfull.*|LaTeX Warning: (?:Reference|Citation|There were|Float).*|Missing character.*)$", re.M)


def main(program, folder):
    run, paper = folder / ALL_KINDS["name"], folder / "paper"
    shutil.rmtree(paper, ignore_errors=True)
    paper.mkdir()
    answer(program, "plot", run, "--style", "icml")
    for name in FIGURES:
        for ending in ("pdf", "tex"):
            shutil.copy(run / "figures" / f"{name}.{ending}", paper)
    for name, words in TABLES.items():
        (paper / f"{name}.tex").write_text(answer(program, "table", run, "--format", "latex", *words))
    (paper / "paper.tex").write_text(PAPER % (", ".join(rf"\ref{{fig:{name}}}" for name in FIGURES), *FIGURES))
    for _ in range(2):  # the second time for references
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=paper,
                              capture_output=True, text=True, errors="replace", check=False)
    faults = COMPLAINTS.findall(done.stdout)
    if done.returncode != 0:
        faults.append(f"pdflatex ends with status {done.returncode}")
    else:
        faults += page_faults(paper / "paper.pdf", 8.5)
        if (pages := re.search(r"Pages: +(\d+)", output_of("pdfinfo", paper / "paper.pdf")).group(1)) != "1":
            faults.append(f"the paper has {pages} pages")
        words = output_of("pdftotext", paper / "paper.pdf", "-")
        faults += [f"the paper lacks '{word}'" for word in ("Figure 3:", "Table 2:", "learned linear router") if word not in words]
    for fault in faults:
        print(f"latex_paper: {fault}", file=sys.stderr)
    print(f"latex_paper: {paper / 'paper.pdf'}")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for tool in ("pdflatex", "pdffonts"):
        if not shutil.which(tool):
            print(f"latex_paper skipped: no {tool} (packages/install test latex)")
            sys.exit(77)
    if not Path(sys.argv[2], ALL_KINDS["name"], "plan.json").exists():
        print("latex_paper skipped: contact_sheet.py has drawn no figures")
        sys.exit(77)
    sys.exit(main(sys.argv[1], Path(sys.argv[2]).resolve()))
