#!/usr/bin/env python3
"""Records the program on terminals of 80 and 120 columns and draws what stands there, for people to look at.

    tests/system/terminal_pictures.py PROGRAM FOLDER

Writes FOLDER/NAME_COLUMNS.png for a run while it works and at its end, for list, check and help, and for the errors of
a scenario with mistakes. Checks that no line is longer than the terminal, except a word that is.

Exit status: 0 done, 1 something is wrong, 77 without rsvg-convert or pseudo-terminals.
"""

import copy
import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from xml.sax.saxutils import escape

COLUMNS = (80, 120)
ROWS = 500  # nothing scrolls away
WIDTH, LINE, SIZE = 8.43, 18, 14  # pixels of a letter and of a line, and the size of the letters
INK, PAPER = "#d8dee9", "#1c2128"
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd", 90: "#8b949e"}
ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")

STUDY = {
    "name": "routers",
    "title": "Learned and frozen routers",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 6, "target": {"kind": "constant", "dim": 2},
             "train_samples": 200, "test_samples": 200},
    "model": {"experts": 4, "router": "linear", "expert": "constant"},
    "train": {"optimizer": "adam", "lr": 0.02, "batch_size": 20, "steps": 3000},
    "metrics": ["task", "sparsity", "load"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": False}},
    "sweep": {"data.train_samples": [100, 400]},
    "seeds": {"root": 1, "count": 6},
    "claims": [
        {"id": "learned_wins", "op": "<", "at": "each", "text": "The learned router has a lower loss than the frozen one.",
         "left": {"arm": "learned", "metric": "test_nmse_top1"}, "right": {"arm": "frozen", "metric": "test_nmse_top1"}},
        {"id": "more_data_help", "op": "decreases", "arm": "learned", "metric": "test_nmse_top1",
         "along": "data.train_samples", "text": "More samples lower the loss."},
        {"id": "balanced", "op": "<", "at": "last", "text": "The learned router is balanced better than the frozen one.",
         "left": {"arm": "learned", "metric": "expert_load_max_violation"},
         "right": {"arm": "frozen", "metric": "expert_load_max_violation"}},
    ],
    "figures": [{"id": "loss", "x": "data.train_samples", "y": "test_nmse_top1", "x_scale": "log"}],
}
MISTAKES = copy.deepcopy(STUDY)
MISTAKES["model"].update(experts=0, router={"kind": "cosine", "temprature": 1})
MISTAKES["train"].update(lr=-1, batch_sise=10)
MISTAKES["metrics"].append("ari")
MISTAKES["claims"][0]["left"]["arm"] = "learnt"
MISTAKES["figures"][0]["x"] = "train_samples"


class Screen:
    """What a terminal of so many columns shows: letters with their look, and how often a line went on below."""

    def __init__(self, columns):
        self.columns, self.row, self.column, self.look = columns, 0, 0, ("", False)
        self.lines, self.wrapped = [{}], []

    def feed(self, text):
        at = 0
        while at < len(text):
            if found := ESCAPE.match(text, at):
                self.command(found[1], found[2])
                at = found.end()
                continue
            self.letter(text[at])
            at += 1

    def letter(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.down()
        elif letter >= " ":
            if self.column == self.columns:
                self.wrapped.append(self.text(self.row))
                self.down()
                self.column = 0
            self.lines[self.row][self.column] = (letter, self.look)
            self.column += 1

    def down(self):
        self.row += 1
        while len(self.lines) <= self.row:
            self.lines.append({})

    def command(self, values, name):
        number = int(values) if values.isdigit() else 0
        line = self.lines[self.row]
        if name == "A":
            self.row = max(0, self.row - max(number, 1))
        elif name in "KJ":
            for column in [c for c in line if number == 2 or c >= self.column]:
                del line[column]
            if name == "J":
                del self.lines[self.row + 1:]
        elif name == "m":
            colour, bold = self.look
            for code in [int(part) for part in values.split(";") if part] or [0]:
                bold = code == 1 or (bold and code not in (0, 22))
                colour = COLOURS[90] if code == 2 else "" if code in (0, 39) else COLOURS.get(code, colour)
            self.look = (colour, bold)

    def text(self, row):
        line = self.lines[row]
        return "".join(line.get(column, (" ",))[0] for column in range(max(line, default=-1) + 1))


def recorded(words, columns, folder, until=None):
    """The screen after the program, or once `until` stands there for the first time."""
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        os.chdir(folder)
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        os.execve(words[0], words, {**environment, "TERM": "xterm-256color", "PAGER": "cat", "LANG": "C.UTF-8"})
    screen, rest, deadline = Screen(columns), b"", time.monotonic() + 120
    while time.monotonic() < deadline and select.select([terminal], [], [], 120)[0]:
        try:
            got = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        if not got:
            break
        rest += got
        # A letter or a command may be split between two reads.
        end = len(rest) - len(re.search(rb"(\x1b(\[[?0-9;]*)?|[\xc2-\xff][\x80-\xbf]*)?$", rest)[0])
        screen.feed(rest[:end].decode(errors="replace"))
        rest = rest[end:]
        if until and any(until in screen.text(row) for row in range(len(screen.lines))):
            break
    os.close(terminal)
    os.waitpid(process, 0)
    screen.feed(rest.decode(errors="replace"))
    while screen.lines and not screen.text(len(screen.lines) - 1).strip():
        screen.lines.pop()
    return screen


def draw(screen, command, png):
    """The screen below its command as a PNG."""
    rows = [[(letter, ("", True)) for letter in "$ " + command]] + [
        [line.get(column, (" ", ("", False))) for column in range(max(line, default=-1) + 1)] for line in screen.lines]
    texts = []
    for row, letters in enumerate(rows):
        for column, (letter, (colour, bold)) in enumerate(letters):
            if letter != " ":
                texts.append(f'<text x="{10 + column * WIDTH:.2f}" y="{22 + row * LINE}" fill="{colour or INK}"'
                             f'{" font-weight=" + chr(34) + "bold" + chr(34) if bold else ""}>{escape(letter)}</text>')
    width, height = 20 + screen.columns * WIDTH, 20 + len(rows) * LINE
    page = png.with_suffix(".svg")
    page.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
                    f'font-family="DejaVu Sans Mono" font-size="{SIZE}"><rect width="100%" height="100%" fill="{PAPER}"/>'
                    f'{"".join(texts)}</svg>')
    subprocess.run(["rsvg-convert", "-o", png, page], check=True)
    page.unlink()


def main(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "routers.json").write_text(json.dumps(STUDY, indent=2))
    (folder / "mistakes.json").write_text(json.dumps(MISTAKES, indent=2))
    faults = []
    for columns in COLUMNS:
        shutil.rmtree(folder / "run", ignore_errors=True)
        run = ("run", "routers.json", "--out", "run", "--threads", "1")
        for name, words, until in (
            ("running", run, "cells/min"), ("run", run, None), ("list", ("list",), None), ("list_cosine", ("list", "cosine"), None),
            ("check", ("check", "theorem2"), None), ("errors", ("validate", "mistakes.json"), None), ("help", (), None),
        ):
            screen = recorded([program, *words], columns, folder, until)
            draw(screen, " ".join(("moelab", *words)), folder / f"{name}_{columns}.png")
            faults += [f"{name} at {columns} columns: a line is longer than the terminal: {line}"
                       for line in screen.wrapped if " " in line.strip()]
            if not screen.lines:
                faults.append(f"{name} at {columns} columns: nothing was printed")
    for fault in faults:
        print(f"terminal_pictures: {fault}", file=sys.stderr)
    print(f"terminal_pictures: {folder}")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not shutil.which("rsvg-convert"):
        print("terminal_pictures skipped: no rsvg-convert (packages/install test)")
        sys.exit(77)
    try:
        os.close(os.openpty()[0])
    except OSError as error:
        print(f"terminal_pictures skipped: no pseudo-terminal ({error})")
        sys.exit(77)
    sys.exit(main(str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()))
