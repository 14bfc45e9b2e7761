"""Programs on one processor, and what is made of their answers."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def start_program(command, cpus, environment=None):
    return subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, cpus))


def read_answer(process):
    """Its line of JSON; raises CalledProcessError where it failed."""
    line, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return json.loads(line)

# The program that trains the workloads, in a build folder.
WORKLOADS_PROGRAM = Path("bench") / "moelab_workloads"


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = options.build
        self.scratch = Path(options.scratch)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
            self.environment[name] = str(options.threads)

    def answer(self, command, cpus=None):
        """The line of JSON of a program on the last processor alone, or on `cpus`."""
        print("  " + " ".join(Path(str(word)).name for word in command), file=sys.stderr, flush=True)
        return read_answer(self.start(command, cpus or {self.cpus[-1]}))

    def own_cpus(self):
        """As many processors as a program has threads."""
        return set(self.cpus[-self.options.threads:])

    def start(self, command, cpus):
        """A program whose line of JSON is read later."""
        return start_program(command, cpus, self.environment)

    def workload(self, name, *more, seconds=None, build=None):
        program = (build or self.build) / WORKLOADS_PROGRAM
        return self.answer([program, name, *more, "--seconds", seconds or self.options.seconds])

    def save(self, name, *more):
        folder = self.scratch / name
        subprocess.run([self.build / WORKLOADS_PROGRAM, *more, "--save", folder], check=True)
        return folder

    def peak(self):
        return self.answer([self.build / "bench" / "moelab_fma_peak"])

    def copied(self, megabytes):
        return self.answer([self.build / "bench" / "moelab_fma_peak", str(megabytes)])


def median(records, key):
    return statistics.median(record[key] for record in records)
