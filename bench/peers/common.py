"""What the peers share: the saved workload, the measurement, the peak of resident memory, the line of JSON."""

import argparse
import ctypes
import json
import time
from pathlib import Path

WARM_UP_SECONDS = 0.1  # left out of the measurement, as moelab_workloads does


def parser(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, help="written by `moelab_workloads NAME --save FOLDER`")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of the measurement")
    return parser


def arguments(description):
    return parser(description).parse_args()


def settings(folder):
    return json.loads((folder / "workload.json").read_text())


def peak_memory_mb():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def openblas_core():
    """The kernels that OpenBLAS has chosen for this processor; OPENBLAS_CORETYPE chooses others."""
    try:
        library = ctypes.CDLL("libopenblas.so.0")
    except OSError:
        return "none"
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_corename().decode()


def measure_rate(steps, seconds, each=1):
    """Steps per second of the endless iterator `steps`. Each item is `each` steps."""
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_UP_SECONDS:
        next(steps)
    start = time.perf_counter()
    done = 0
    elapsed = 0.0
    while elapsed < seconds:
        next(steps)
        done += each
        elapsed = time.perf_counter() - start
    return {"steps": done, "seconds": elapsed, "steps_per_second": done / elapsed}


def measure_to_target(steps, nmse, target, most_steps, every):
    """Seconds and steps until nmse() is at most `target`; evaluations every `every` steps are included."""
    nmse()
    start = time.perf_counter()
    for step in range(1, most_steps + 1):
        next(steps)
        if step % every == 0:
            value = nmse()
            elapsed = time.perf_counter() - start
            if value <= target:
                break
    return {
        "train_nmse": value,
        "steps": step,
        "seconds": elapsed,
        "reached": value <= target,
        "steps_per_second": step / elapsed,
    }
