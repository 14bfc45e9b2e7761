"""Runs the program in a temporary run folder, and reads its answers."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile


class CommandFailed(Exception):
    """A command of the program ended with a status that it should not have."""


@contextlib.contextmanager
def work_folder():
    """A temporary folder, in memory where the machine has room. A run waits for the disk more than it computes."""
    memory = pathlib.Path("/dev/shm")
    in_memory = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**31
    with tempfile.TemporaryDirectory(dir=memory if in_memory else None) as name:
        yield pathlib.Path(name)


class Program:
    def __init__(self, path, folder):
        self.path = str(path)
        self.folder = folder

    def ask(self, *arguments, statuses=(0,)):
        """The standard output of a command. It runs in the work folder."""
        done = subprocess.run([self.path, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        if done.returncode not in statuses:
            text = (done.stderr or done.stdout)[-1500:]
            raise CommandFailed(f"moelab {' '.join(map(str, arguments))}: status {done.returncode}\n{text}")
        return done.stdout

    def run(self, scenario, *options, answer=False):
        """Runs a scenario in the folder `results`, which is made anew."""
        shutil.rmtree(self.folder / "results", ignore_errors=True)
        (self.folder / "scenario.json").write_text(json.dumps(scenario))
        # Status 1: all cells of the run diverged. Status 3: gnuplot is missing, after the cells.
        text = self.ask("run", "scenario.json", "--out", "results", "--threads", 1, "--json", *options, statuses=(0, 3))
        return json.loads(text) if answer else None

    def import_arm(self, arm, columns, rows):
        """Imports a table. `rows` holds texts."""
        with open(self.folder / "table.csv", "w", encoding="utf-8") as file:
            file.write(",".join(columns) + "\n")
            file.writelines(",".join(row) + "\n" for row in rows)
        self.ask("import", "results", "table.csv", "--arm", arm)

    def claims(self):
        """The claims of the run. Status 1 means that one of them is refuted."""
        return json.loads(self.ask("claims", "results", "--json", statuses=(0, 1)))

    def imported_claims(self):
        """The claims on imported arms, by (claim, arm)."""
        return {tuple(claim["id"].split("@")): claim for claim in self.claims() if "@" in claim["id"]}

    def export(self):
        """The cells of the run, one dictionary of texts for each."""
        lines = self.ask("export", "results").splitlines()
        names = lines[0].split(",")
        return [dict(zip(names, line.split(","))) for line in lines[1:]]
