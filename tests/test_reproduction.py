"""The reproduction scripts: killed and resumed runs end like undisturbed ones."""

from __future__ import annotations

import contextlib
import csv
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "reproduce_sequence1.py"
# CPU time is measured, not chosen.
TIMES = ("seconds", "seconds_per_sweep", "act", "seconds_to_reach")


def command(folder, n_sweeps, *options):
    # Budgets are sweeps; a scale of one is three of them.
    return [
        *(sys.executable, str(SCRIPT), "--clock", "sweeps", "--scale", str(n_sweeps / 3)),
        *("--seeds", "1", "--jobs", "1", "--save-every", "0", "--folder", str(folder)),
        *("--only", "SGibbs +SM=2", "Beam", "HDP", "SB"),
        *options,
    ]


def quality(folder):
    with open(folder / "trials.csv") as file:
        return [
            {key: value for key, value in row.items() if key not in TIMES}
            for row in csv.DictReader(file)
        ]


def run(folder, n_sweeps, *options):
    done = subprocess.run(
        command(folder, n_sweeps, *options), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder):
    """Names of the files in a folder and when they were written."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # replaced in between
            found[path] = path.stat().st_mtime_ns
    return found


def test_killed_and_resumed(tmp_path):
    n_sweeps = 150
    run(tmp_path / "whole", n_sweeps)
    rng = np.random.default_rng(0)
    folder = tmp_path / "killed"
    n_killed = 0
    for _ in range(3):
        before = contents(folder)
        process = subprocess.Popen(
            command(folder, n_sweeps),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # From the first thing that it writes, however fast the machine is.
        while process.poll() is None and contents(folder) == before:
            time.sleep(0.002)
        try:
            process.wait(rng.uniform(0, 0.3))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            n_killed += 1
    assert n_killed > 0
    printed = run(folder, n_sweeps)
    assert quality(folder) == quality(tmp_path / "whole")
    assert len(quality(folder)) == 7
    assert "| Beam +SM=13 | 1 |" in printed
    # Files of another set-up are refused.
    done = subprocess.run(
        command(folder, 60), capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "belongs to another set-up" in done.stderr


@pytest.mark.parametrize("name", ["sequence2", "alice"])
def test_options_are_explained(name):
    script = SCRIPT.with_name(f"reproduce_{name}.py")
    done = subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, check=True
    )
    assert "--scale" in done.stdout
